"""The last stage: prepared.json, which says what the data hold and how they came to be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mnmt_data.filters import FilterReport
from mnmt_data.prepare.config import DataConfig
from mnmt_data.prepare.encode import AllWritten
from mnmt_data.prepare.segment_job import Coverage, Written
from mnmt_data.prepare.workspace import Parts
from mnmt_data.store.atomic_file import checksum
from mnmt_data.store.prepared import SCHEMA, VOCABULARY
from mnmt_data.store.segments import total
from mnmt_data.store.vocabulary import EOS, PAD, UNK, Vocabulary


def describe(
    config: DataConfig,
    folder: Path,
    train: Mapping[str, Parts],
    chosen: Mapping[str, FilterReport],
    written: AllWritten,
) -> dict[str, Any]:
    """What is known of the data, but their study and fingerprint.

    Args:
        config: The settings.
        folder: Where the vocabulary, segments and texts are.
        train: {task: its cleaned training text}, at least of every task that is trained on.
        chosen: {task: what the choice of training pairs dropped}.
        written: The segments.
    """
    return {
        "schema": SCHEMA,
        "tasks": list(config.tasks),
        "zero_shot": list(config.zero_shot),
        "vocabulary": _vocabulary(config, folder),
        "counts": {
            split: {task: _counts(segments) for task, segments in tasks.items()}
            for split, tasks in written.items()
        },
        "filters": {
            task: _filters(train[task], chosen[task], segments) for task, segments in written["train"].items()
        },
        "coverage": {language: found.to_dict() for language, found in _coverage(written["train"]).items()},
        "config": asdict(config),
        "files": {
            path.relative_to(folder).as_posix(): {"bytes": path.stat().st_size, "sha256": checksum(path)}
            for path in sorted(_files(folder))
        },
    }


def _vocabulary(config: DataConfig, folder: Path) -> dict[str, Any]:
    vocab = Vocabulary.load(folder / VOCABULARY)
    tags = {language: vocab.tag(language) for language in config.target_languages}
    ids = {"pad": PAD, "eos": EOS, "unk": UNK, "tags": tags}
    return {"size": vocab.size, **ids, "target_tag": config.target_tag}


def _files(folder: Path) -> Iterator[Path]:
    yield folder / VOCABULARY
    for name in ("shards", "text"):
        yield from (path for path in (folder / name).rglob("*") if path.is_file())


def _filters(train: Parts, chosen: FilterReport, segments: Iterable[Written]) -> dict[str, Any]:
    report = sum((segment.filters for segment in segments), train.filters + chosen)
    return {"read": train.read, **report.to_dict()}


def _counts(segments: list[Written]) -> dict[str, Any]:
    tgt = sum((segment.tgt for segment in segments), Coverage())
    shares = {"byte_tokens": tgt.byte_tokens, "unknown_tokens": tgt.unknown_tokens}
    return {**asdict(total(segment.info for segment in segments)), **shares}


def _coverage(train: Mapping[str, list[Written]]) -> dict[str, Coverage]:
    """{language: of all training text in it}."""
    found: dict[str, Coverage] = {}
    for task, segments in train.items():
        src, tgt = task.split("-")
        for segment in segments:
            found[src] = found.get(src, Coverage()) + segment.src
            found[tgt] = found.get(tgt, Coverage()) + segment.tgt
    return found
