"""Corpus folders of synthetic languages: text, weights of pairs, and known losses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mnmt_data.store.atomic_file import checksum, write_json
from mnmt_data.store.corpus_folder import DESCRIPTION, weights_path
from mnmt_data.synthetic.concept_pairs import sentence_pairs
from mnmt_data.synthetic.concepts import SPLITS
from mnmt_data.synthetic.config import SyntheticConfig
from mnmt_data.synthetic.context_pairs import context_pairs, weighted_context_pairs
from mnmt_data.synthetic.contexts import ContextsConfig

Lines = NDArray[np.uint8]
Languages: TypeAlias = SyntheticConfig | ContextsConfig

_LATER: dict[str, Any] = {
    "pairs": (),
    "zipf_exponents": {},
    "shared_lexicon": 0,
    "kind": "lexicon",
    "exact_test": False,
    "test_contexts": 0,
}
"""Settings added after version 0.1, with their neutral values."""


def write_synthetic_corpus(config: Languages, folder: Path) -> None:
    """Write train, dev and test of every task as a corpus folder, with a space between syllables.

    The weights of an exact test set are written beside it, one number a line. `corpus.json`, written last,
    holds provenance, counts, checksums, and for every task the irreducible loss and the limit of its power
    law.
    """
    folder.mkdir(parents=True, exist_ok=True)
    counts: dict[str, int] = {}
    checksums: dict[str, str] = {}
    for task in config.tasks:
        weights_path(folder, "test", task).unlink(missing_ok=True)
        for split in SPLITS:
            stem = f"{split}.{task}"
            if split == "test" and isinstance(config, ContextsConfig) and config.exact_test:
                counts[stem], sums = _write_weighted_pairs(config, folder, stem)
            else:
                counts[stem] = config.sentences(split, task)
                sums = _write_pairs(folder, stem, _pairs(config, split, task), counts[stem])
            checksums |= sums
    limits = {task: config.power_law_limit_of(task) for task in config.tasks}
    description = {
        "schema": 1,
        "provenance": {"generator": "mnmt_data.synthetic", "config": _settings(config)},
        "counts": counts,
        "sha256": checksums,
        "irreducible": {task: config.irreducible_of(task) for task in config.tasks},
        "power_law_limit": {task: limit for task, limit in limits.items() if limit is not None},
    }
    write_json(folder / DESCRIPTION, description)


def _settings(config: Languages) -> dict[str, Any]:
    """Return the configuration without later settings at their defaults, so that old corpora stay current."""
    settings = asdict(config)
    return {name: value for name, value in settings.items() if _LATER.get(name, ...) != value}


def _pairs(config: Languages, split: str, task: str) -> Iterator[tuple[Lines, Lines]]:
    if isinstance(config, ContextsConfig):
        return context_pairs(config, split, task)
    return sentence_pairs(config, split, task)


def _write_weighted_pairs(config: ContextsConfig, folder: Path, stem: str) -> tuple[int, dict[str, str]]:
    """Write an exact test set and its weights; return its pairs, and {file name: SHA-256}."""
    split, task = stem.split(".")
    pairs, path = weighted_context_pairs(config, task), weights_path(folder, split, task)
    checksums = _write_pairs(folder, stem, [(pairs.src, pairs.tgt)], len(pairs.weights))
    path.write_text("".join(f"{weight!r}\n" for weight in pairs.weights.tolist()), encoding="ascii")
    return len(pairs.weights), checksums | {path.name: checksum(path)}


def _write_pairs(
    folder: Path, stem: str, blocks: Iterable[tuple[Lines, Lines]], count: int
) -> dict[str, str]:
    """Write `count` pairs to the two files of `stem`, SPLIT.SRC-TGT; return {file name: SHA-256}."""
    names = [f"{stem}.{language}" for language in stem.partition(".")[2].split("-")]
    checksums = [sha256(), sha256()]
    with (folder / names[0]).open("wb") as source, (folder / names[1]).open("wb") as target:
        for block in blocks:
            for file, digest, lines in zip((source, target), checksums, block, strict=True):
                text = lines[:count].tobytes()
                file.write(text)
                digest.update(text)
            count -= min(count, len(block[0]))
            if count == 0:
                break
    return {name: digest.hexdigest() for name, digest in zip(names, checksums, strict=True)}
