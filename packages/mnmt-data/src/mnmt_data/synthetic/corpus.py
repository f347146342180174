"""Synthetic languages as a corpus folder."""

from __future__ import annotations

import json
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from mnmt_data.synthetic.concepts import SPLITS
from mnmt_data.synthetic.config import SyntheticConfig
from mnmt_data.synthetic.pairs import sentence_pairs
from mnmt_data.synthetic.text import text_bytes

_LATER: dict[str, Any] = {
    "pairs": (),
    "max_words_per_sentence": None,
    "shared_lexicon": 0,
    "word_order": "same",
    "noise": 0,
    "copies": 0,
    "train_sentences_of": {},
}
"""Settings that came after version 0.1, and where each changes nothing."""


def write_synthetic_corpus(config: SyntheticConfig, folder: Path) -> None:
    """Write train, dev and test of every task as a corpus folder, with a space between syllables.

    `corpus.json`, written last, holds provenance, counts, checksums and the irreducible loss of every task.
    """
    folder.mkdir(parents=True, exist_ok=True)
    counts = {f"{split}.{task}": config.sentences(split, task) for task in config.tasks for split in SPLITS}
    checksums: dict[str, str] = {}
    for stem, count in counts.items():
        checksums |= _write_pairs(config, folder, stem, count)
    description = {
        "schema": 1,
        "provenance": {"generator": "mnmt_data.synthetic", "config": _settings(config)},
        "counts": counts,
        "sha256": checksums,
        "irreducible": {task: config.irreducible_of(task) for task in config.tasks},
    }
    (folder / "corpus.json").write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")


def _settings(config: SyntheticConfig) -> dict[str, Any]:
    """The configuration without later settings that change nothing: the same corpus, the same description."""
    settings = asdict(config)
    return {name: value for name, value in settings.items() if _LATER.get(name, ...) != value}


def _write_pairs(config: SyntheticConfig, folder: Path, stem: str, count: int) -> dict[str, str]:
    """Write `count` pairs to the two files of `stem`, SPLIT.SRC-TGT; returns {file name: SHA-256}."""
    split, task = stem.split(".")
    names = [f"{stem}.{language}" for language in task.split("-")]
    checksums = [sha256(), sha256()]
    with (folder / names[0]).open("wb") as source, (folder / names[1]).open("wb") as target:
        for block in sentence_pairs(config, split, task):
            for file, checksum, lines in zip((source, target), checksums, block, strict=True):
                text = text_bytes(lines[:count])
                file.write(text)
                checksum.update(text)
            count -= min(count, len(block[0]))
            if count == 0:
                break
    return {name: checksum.hexdigest() for name, checksum in zip(names, checksums, strict=True)}
