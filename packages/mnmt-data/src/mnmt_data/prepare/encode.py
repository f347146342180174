"""The fourth stage: chosen pairs as token ids, in segments."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mnmt_data.errors import DataError
from mnmt_data.prepare.clean import AllParts
from mnmt_data.prepare.config import DataConfig
from mnmt_data.prepare.segment_job import SegmentJob, Written, run_segment_job
from mnmt_data.prepare.splits import chosen_rows, parts_of
from mnmt_data.prepare.workers import Progress, Report, Workers
from mnmt_data.prepare.workspace import Workspace

SEGMENT_PAIRS = 1_000_000
"""Training pairs after which a segment ends, with the part that it is in."""

LocalRows = tuple[tuple[Path, NDArray[np.int64]], ...]
"""(part, rows of it), in order."""

AllWritten = dict[str, dict[str, list[Written]]]
"""{split: {task: its segments}}"""


def encode(
    config: DataConfig, parts: AllParts, space: Workspace, workers: Workers, report: Report
) -> AllWritten:
    """Write the segments that are not there yet, and the text of dev and test sets."""
    segments: dict[tuple[str, str], int] = {}
    jobs = _jobs(config, parts, space, segments)
    with Progress("encode", report) as progress:
        for job, _ in workers.run(run_segment_job, jobs):
            progress.add(len(job))
    written: AllWritten = {}
    for (split, task), number in segments.items():
        marks = [space.mark(f"encoded/{split}.{task}.{segment:05}") for segment in range(number)]
        written.setdefault(split, {})[task] = [Written.from_dict(mark) for mark in marks]
    for task, found in written["train"].items():
        if not any(segment.info.pairs for segment in found):
            raise DataError(
                f"[data] leaves no training pairs of {task}; make `max_length` ({config.max_length}) larger."
            )
    return written


def _jobs(
    config: DataConfig, parts: AllParts, space: Workspace, segments: dict[tuple[str, str], int]
) -> Iterator[SegmentJob]:
    """Segments that are missing; counts those of each split and task."""
    for split, task in _places(config, space):
        for number, rows in enumerate(_segment_rows(parts, space, split, task)):
            segments[split, task] = number + 1
            job = SegmentJob(
                space=space,
                split=split,
                task=task,
                number=number,
                rows=rows,
                max_length=config.max_length,
                target_tag=config.target_tag,
            )
            if space.mark(job.mark) is None:
                yield job


def _places(config: DataConfig, space: Workspace) -> list[tuple[str, str]]:
    """Every split and task that has a choice; zero-shot tasks have none of train."""
    splits = dict.fromkeys(("train", "dev", "test", *config.files, *config.test_corpora))
    return [
        (split, task)
        for split in splits
        for task in (config.tasks if split == "train" else config.evaluated)
        if space.chosen(split, task).exists()
    ]


def _segment_rows(parts: AllParts, space: Workspace, split: str, task: str) -> Iterator[LocalRows]:
    """The rows of each segment: of train about `SEGMENT_PAIRS`, of other splits all."""
    pairs, chosen = parts_of(parts, split, task), chosen_rows(space, split, task)
    taken: list[tuple[Path, NDArray[np.int64]]] = []
    for path, start, stop in zip(pairs.paths, pairs.starts[:-1], pairs.starts[1:], strict=True):
        taken.append((path, _local_rows(chosen, start, stop)))
        if split == "train" and sum(len(rows) for _, rows in taken) >= SEGMENT_PAIRS:
            yield tuple(taken)
            taken = []
    if taken:
        yield tuple(taken)


def _local_rows(chosen: NDArray[Any], start: int, stop: int) -> NDArray[np.int64]:
    """The chosen rows of a part that holds the rows from `start` to `stop`, counted from its first."""
    if chosen.dtype == np.bool_:
        return np.flatnonzero(chosen[start:stop])
    return chosen[slice(*np.searchsorted(chosen, (start, stop)))] - start
