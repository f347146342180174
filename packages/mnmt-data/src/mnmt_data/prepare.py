"""From a study's text to prepared data: vocabulary, token shards, and the text of the test sets."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from hashlib import sha256
from math import ceil
from pathlib import Path
from typing import Any

from mnmt_data.config import DataConfig
from mnmt_data.corpus import Bitext, write_bitext
from mnmt_data.errors import DataError
from mnmt_data.prepared import (
    DESCRIPTION,
    SCHEMA,
    VOCABULARY,
    Prepared,
    open_prepared,
    shard_path,
    text_folder,
)
from mnmt_data.ragged import Ragged
from mnmt_data.segments import write_segment
from mnmt_data.shards import segment_path
from mnmt_data.sources import Text, checksum, read_text
from mnmt_data.study import StudyFile
from mnmt_data.synthetic import write_synthetic_corpus
from mnmt_data.vocab import EOS, PAD, UNK, Vocabulary, train_vocabulary

VOCABULARY_SENTENCES = 400_000
"""Sentences the vocabulary is learned from, in equal shares of tasks and sides."""

Report = Callable[[str], None]
Counts = dict[str, dict[str, dict[str, int]]]
"""{split: {task: {what: how many}}}"""


def prepare_study(study: StudyFile, out: Path, *, report: Report = lambda line: None) -> Prepared:
    """Prepares the data of `study` in `out/data`, unless the same was prepared there before.

    The folder appears complete or not at all.

    Args:
        study: its `[data]` section says what to prepare.
        out: the study's results.
        report: called with a line at each stage.

    Raises:
        DataError: if the text, or a file of it, cannot be used.
    """
    config = study.section("data", DataConfig)
    folder = out / "data"
    corpus = _corpus(config, out, report)
    fingerprint = _fingerprint(config, corpus)
    if _is_current(folder, fingerprint):
        report(f"up to date: {folder}")
        return open_prepared(folder)
    partial = folder.with_name(".data.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    description = _prepare(study, config, read_text(config, corpus), partial, report)
    _write_description({**description, "fingerprint": fingerprint}, partial)
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)
    return open_prepared(folder)


def _corpus(config: DataConfig, out: Path, report: Report) -> Path:
    """The corpus folder; made first if the languages are."""
    if config.synthetic is not None:
        report("making synthetic languages")
        write_synthetic_corpus(config.synthetic, out / "corpus")
    return config.corpus or out / "corpus"


def _prepare(
    study: StudyFile, config: DataConfig, text: Text, folder: Path, report: Report
) -> dict[str, Any]:
    """Writes everything but prepared.json, and returns what that will say."""
    train = text.splits["train"]
    _require_pairs(study, {task: len(bitext) for task, bitext in train.items()}, "make the test sets smaller")
    report(f"learning a {config.vocab.kind} vocabulary")
    vocab = _learn_vocabulary(study, config, train, folder / VOCABULARY)
    counts, too_long = _write_splits(config, text, vocab, folder, report)
    kept = {task: count["pairs"] for task, count in counts["train"].items()}
    _require_pairs(study, kept, f"make `max_length` ({config.max_length}) larger")
    tags = {language: vocab.tag(language) for language in config.target_languages}
    return {
        "schema": SCHEMA,
        "study": study.name,
        "tasks": list(config.tasks),
        "vocabulary": {"size": vocab.size, "pad": PAD, "eos": EOS, "unk": UNK, "tags": tags},
        "counts": counts,
        "dropped": {task: {**text.dropped[task], "too long": too_long[task]} for task in config.tasks},
        "irreducible": dict(text.irreducible),
        "config": asdict(config),
    }


def _require_pairs(study: StudyFile, pairs: Mapping[str, int], remedy: str) -> None:
    if empty := [task for task, count in pairs.items() if not count]:
        raise DataError(f"{study.path}: [data] leaves no training pairs of {empty[0]}; {remedy}.")


def _learn_vocabulary(
    study: StudyFile, config: DataConfig, train: Mapping[str, Bitext], path: Path
) -> Vocabulary:
    kind, size, languages = config.vocab.kind, config.vocab.size, config.target_languages
    try:
        train_vocabulary(_vocabulary_text(train), path, kind=kind, size=size, languages=languages)
    except ValueError as error:
        raise DataError(f"{study.path}: [data.vocab] {error}") from error
    return Vocabulary.load(path)


def _vocabulary_text(train: Mapping[str, Bitext]) -> Iterator[str]:
    """Sentences spread evenly over each side of each task, at most an equal share of each."""
    sides = [side for bitext in train.values() for side in (bitext.src, bitext.tgt)]
    share = VOCABULARY_SENTENCES // len(sides)
    for side in sides:
        yield from side[:: ceil(len(side) / share)]


def _write_splits(
    config: DataConfig, text: Text, vocab: Vocabulary, folder: Path, report: Report
) -> tuple[Counts, dict[str, int]]:
    """Writes the shards and texts; returns their counts, and the training pairs left out as too long."""
    counts: Counts = {split: {} for split in text.splits}
    too_long = {}
    for split, bitexts in text.splits.items():
        for task, bitext in bitexts.items():
            src, tgt = _encode(vocab, task, bitext)
            if split == "train":
                src, tgt = _short_enough(src, tgt, config.max_length)
                too_long[task] = len(bitext) - len(src)
            else:
                write_bitext(text_folder(folder), split, task, bitext)
            shard = shard_path(folder, split, task)
            shard.mkdir(parents=True)
            write_segment(segment_path(shard, 0), src, tgt)
            tokens = {"src_tokens": src.values.size, "tgt_tokens": tgt.values.size}
            counts[split][task] = {"pairs": len(src), **tokens}
            report(f"{split:<6} {task}: {len(src):,} pairs, {tgt.values.size:,} target tokens")
    return counts, too_long


def _encode(vocab: Vocabulary, task: str, bitext: Bitext) -> tuple[Ragged, Ragged]:
    """The target tag begins the source; `</s>` ends both sides."""
    tag = vocab.tag(task.split("-")[1])
    return vocab.encode_ragged(bitext.src, tag=tag), vocab.encode_ragged(bitext.tgt)


def _short_enough(src: Ragged, tgt: Ragged, max_length: int) -> tuple[Ragged, Ragged]:
    keep = ((src.lengths <= max_length) & (tgt.lengths <= max_length)).nonzero()[0]
    return (src, tgt) if len(keep) == len(src) else (src.take(keep), tgt.take(keep))


def _write_description(description: Mapping[str, Any], folder: Path) -> None:
    text = json.dumps(description, indent=2, default=str) + "\n"
    (folder / DESCRIPTION).write_text(text, encoding="utf-8")


def _fingerprint(config: DataConfig, corpus: Path) -> str:
    described = json.dumps(asdict(config), default=str, sort_keys=True)
    return sha256(f"{SCHEMA} {described} {checksum(config, corpus)}".encode()).hexdigest()


def _is_current(folder: Path, fingerprint: str) -> bool:
    try:
        return open_prepared(folder).fingerprint == fingerprint
    except DataError:
        return False
