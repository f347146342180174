"""The last stage: the description of the data, with what was dropped, counted and written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from mnmt_data.filters import FilterReport
from mnmt_data.prepare.checksums import checksums_of
from mnmt_data.prepare.config import DataConfig
from mnmt_data.prepare.encode import EncodedSplits
from mnmt_data.prepare.segment_job import Coverage, EncodedSegment
from mnmt_data.prepare.split_report import SplitReport
from mnmt_data.prepare.stages import Stages
from mnmt_data.prepare.workspace import Parts
from mnmt_data.store.description import (
    CoverageInfo,
    FileInfo,
    FilterInfo,
    PreparedDescription,
    SplitInfo,
    VocabularyInfo,
)
from mnmt_data.store.prepared import VOCABULARY
from mnmt_data.store.segments import total
from mnmt_data.store.vocabulary import Vocabulary


def describe(
    config: DataConfig,
    folder: Path,
    train: Mapping[str, Parts],
    split: SplitReport,
    splits: EncodedSplits,
    stages: Stages,
    *,
    warnings: Iterable[str],
) -> PreparedDescription:
    """Describe the data; study, irreducible losses and fingerprint stay empty.

    Args:
        config: The settings.
        folder: Where the vocabulary, segments and texts are.
        train: {task: its cleaned training text}, at least of every task that is trained on.
        split: What the split dropped.
        splits: The segments, by the directions in which they are stored.
        stages: Compute the checksums.
        warnings: Warnings of the sources.
    """
    shards = {name: _shards(config, stored) for name, stored in splits.items()}
    return PreparedDescription(
        tasks=config.tasks,
        zero_shot=config.zero_shot,
        vocabulary=_vocabulary(config, folder),
        counts={
            name: {task: _counts(stored[first], task, first) for task, first in shards[name].items()}
            for name, stored in splits.items()
        },
        shards=shards,
        filters={
            task: _filters(train[task], split.dropped[task].filters, segments)
            for task, segments in splits["train"].items()
        },
        leaks={task: split.dropped[task].leaks for task in splits["train"]},
        dev_copies=split.dev_copies,
        sentences=split.sentences,
        warnings=(*warnings, *split.warnings),
        coverage=_coverage(splits["train"]),
        config=asdict(config),
        files={
            path.relative_to(folder).as_posix(): FileInfo(bytes=path.stat().st_size, sha256=sha256)
            for path, sha256 in checksums_of(sorted(_files(folder)), stages).items()
        },
    )


def valid_losses(losses: Mapping[str, float], coverage: Mapping[str, CoverageInfo]) -> dict[str, float]:
    """Return the known losses of synthetic languages that are valid per token, {task: nats}.

    They are computed per word, so the vocabulary must have one token for each word, and no word unknown.
    """
    exact = {
        name for name, rates in coverage.items() if rates.tokens_per_word == 1 and not rates.unknown_share
    }
    return {task: loss for task, loss in losses.items() if exact.issuperset(task.split("-"))}


def _vocabulary(config: DataConfig, folder: Path) -> VocabularyInfo:
    vocab = Vocabulary.load(folder / VOCABULARY)
    tags = {language: vocab.tag(language) for language in config.target_languages}
    return VocabularyInfo(size=vocab.size, tags=tags, target_tag=config.target_tag)


def _shards(config: DataConfig, stored: Mapping[str, list[EncodedSegment]]) -> dict[str, str]:
    """Return {task: the direction in which the shard that it reads is stored}, in the order of the study."""
    readers = {task: first for first, segments in stored.items() for task in segments[0].infos}
    return {task: readers[task] for task in config.evaluated if task in readers}


def _files(folder: Path) -> Iterator[Path]:
    yield folder / VOCABULARY
    for name in ("shards", "text"):
        yield from (path for path in (folder / name).rglob("*") if path.is_file())


def _filters(train: Parts, dropped: FilterReport, segments: Iterable[EncodedSegment]) -> FilterInfo:
    report = sum((segment.filters for segment in segments), train.filters + dropped)
    return FilterInfo(read=train.read, counts=report.counts, samples=report.samples)


def _counts(segments: list[EncodedSegment], task: str, stored: str) -> SplitInfo:
    """Count pairs and tokens as a task reads them from segments in the direction `stored`."""
    sides = (segment.tgt if task == stored else segment.src for segment in segments)
    tgt = sum(sides, Coverage())
    return SplitInfo(
        **asdict(total(segment.infos[task] for segment in segments)),
        byte_tokens=tgt.byte_tokens,
        unknown_tokens=tgt.unknown_tokens,
    )


def _coverage(train: Mapping[str, list[EncodedSegment]]) -> dict[str, CoverageInfo]:
    """Return the coverage of each language over all training text in it."""
    sums: dict[str, Coverage] = {}
    for task, segments in train.items():
        src, tgt = task.split("-")
        for segment in segments:
            sums[src] = sums.get(src, Coverage()) + segment.src
            sums[tgt] = sums.get(tgt, Coverage()) + segment.tgt
    return {language: coverage.rates() for language, coverage in sums.items()}
