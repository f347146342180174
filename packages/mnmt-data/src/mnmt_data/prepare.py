"""From a study's text to prepared data: vocabulary, token shards, and the text of the test sets."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from hashlib import sha256
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

from mnmt_data.config import DataConfig
from mnmt_data.corpus import Bitext, write_bitext
from mnmt_data.errors import DataError
from mnmt_data.prepared import DESCRIPTION, SCHEMA, VOCABULARY, Prepared, open_prepared, shard_path, text_folder
from mnmt_data.shards import Ragged, write_shard
from mnmt_data.sources import Text, checksum, read_text
from mnmt_data.split import Splits
from mnmt_data.study import StudyFile
from mnmt_data.synthetic import write_synthetic_corpus
from mnmt_data.vocab import EOS, PAD, UNK, Vocabulary, train_vocabulary

VOCABULARY_SENTENCES = 400_000
"""Sentences the vocabulary is learned from, in equal shares of tasks and sides."""

Report = Callable[[str], None]


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
    _prepare(study.name, config, read_text(config, corpus), partial, fingerprint, report)
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)
    return open_prepared(folder)


def _corpus(config: DataConfig, out: Path, report: Report) -> Path:
    """The corpus folder; made first if the languages are."""
    if config.corpus is not None:
        return config.corpus
    if config.synthetic is None:
        raise DataError("`corpus` or `synthetic` must be given.")
    report("making synthetic languages")
    write_synthetic_corpus(config.synthetic, out / "corpus")
    return out / "corpus"


def _prepare(
    name: str, config: DataConfig, text: Text, folder: Path, fingerprint: str, report: Report
) -> None:
    train = text.splits["train"]
    if empty := [task for task, bitext in train.items() if not len(bitext)]:
        raise DataError(f"{empty[0]}: no training pairs are left after filtering; make the test sets smaller.")
    report(f"learning a {config.vocab.kind} vocabulary")
    train_vocabulary(
        _vocabulary_text(train),
        folder / VOCABULARY,
        kind=config.vocab.kind,
        size=config.vocab.size,
        languages=config.target_languages,
    )
    vocab = Vocabulary.load(folder / VOCABULARY)
    counts, too_long = _write_splits(config, text.splits, vocab, folder, report)
    description = {
        "schema": SCHEMA,
        "study": name,
        "tasks": list(config.tasks),
        "vocabulary": {"size": vocab.size, "pad": PAD, "eos": EOS, "unk": UNK, **_tags(config, vocab)},
        "counts": counts,
        "dropped": {task: {**text.dropped[task], "too long": too_long[task]} for task in config.tasks},
        "irreducible": dict(text.irreducible),
        "config": json.loads(json.dumps(asdict(config), default=str)),
        "fingerprint": fingerprint,
    }
    (folder / DESCRIPTION).write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")


def _write_splits(
    config: DataConfig, splits: Splits, vocab: Vocabulary, folder: Path, report: Report
) -> tuple[dict[str, dict[str, Any]], dict[str, int]]:
    """Writes the shards and texts; returns their counts, and the training pairs left out as too long."""
    shard_path(folder, "train", config.tasks[0]).parent.mkdir()
    counts: dict[str, dict[str, Any]] = {split: {} for split in splits}
    too_long = {}
    for split, bitexts in splits.items():
        for task, bitext in bitexts.items():
            src, tgt = _encode(vocab, task, bitext)
            if split == "train":
                src, tgt = _short_enough(src, tgt, config.max_length)
                too_long[task] = len(bitext) - len(src)
            else:
                write_bitext(text_folder(folder), split, task, bitext)
            write_shard(shard_path(folder, split, task), src, tgt)
            tokens = {"src_tokens": int(src.lengths.sum()), "tgt_tokens": int(tgt.lengths.sum())}
            counts[split][task] = {"pairs": len(src), **tokens}
            report(f"{split:<6} {task}: {len(src):,} pairs, {tokens['tgt_tokens']:,} target tokens")
    return counts, too_long


def _encode(vocab: Vocabulary, task: str, bitext: Bitext) -> tuple[Ragged, Ragged]:
    """The target tag begins the source; `</s>` ends both sides."""
    tag = vocab.tag(task.split("-")[1])
    return vocab.encode_ragged(bitext.src, tag=tag), vocab.encode_ragged(bitext.tgt)


def _short_enough(src: Ragged, tgt: Ragged, max_length: int) -> tuple[Ragged, Ragged]:
    keep = ((src.lengths <= max_length) & (tgt.lengths <= max_length)).nonzero()[0]
    return (src, tgt) if len(keep) == len(src) else (src.take(keep), tgt.take(keep))


def _vocabulary_text(train: Mapping[str, Bitext]) -> Iterator[str]:
    """Sentences of every task and side in turn, spread evenly over each, until the shortest side is used up."""
    sides = [side for bitext in train.values() for side in (bitext.src, bitext.tgt)]
    share = VOCABULARY_SENTENCES // len(sides)
    spread = [side[:: max(1, len(side) // share)] for side in sides]
    in_turn = (line for lines in zip_longest(*spread) for line in lines if line is not None)
    return islice(in_turn, VOCABULARY_SENTENCES)


def _tags(config: DataConfig, vocab: Vocabulary) -> dict[str, dict[str, int]]:
    return {"tags": {language: vocab.tag(language) for language in config.target_languages}}


def _fingerprint(config: DataConfig, corpus: Path) -> str:
    described = json.dumps(asdict(config), default=str, sort_keys=True)
    return sha256(f"{SCHEMA} {described} {checksum(config, corpus)}".encode()).hexdigest()


def _is_current(folder: Path, fingerprint: str) -> bool:
    try:
        return open_prepared(folder).fingerprint == fingerprint
    except DataError:
        return False
