"""The fifth stage: large training shards in random order, so that streams read them from end to end.

Each segment was encoded in random order. Segment i of the shuffled shard consists of the i-th slice of every
encoded segment, shuffled again. So all pairs are read and written once more, with one segment at a time in
memory, whatever the size of the shard.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mnmt_data.counter_rng import random_order, stream_key
from mnmt_data.prepare.stages import Stages
from mnmt_data.prepare.workspace import Workspace
from mnmt_data.store.prepared import shard_path
from mnmt_data.store.ragged import Ragged
from mnmt_data.store.scores import Scores, read_scores, score_path, write_scores
from mnmt_data.store.segment_file import SegmentFile, Stretch
from mnmt_data.store.segments import write_segment
from mnmt_data.store.shards import segment_path

SHUFFLED_PAIRS = 2**22
"""Shards of more training pairs are shuffled; smaller ones fit into memory."""

BLOCK_ROWS = 2**12
"""Consecutive rows of a shuffled shard to draw together: some 400 KB."""


@dataclass(frozen=True, kw_only=True)
class ShuffleJob:
    """A segment of a shuffled shard to write."""

    parts: tuple[Path, ...]
    """The segments in the order of the text, each shuffled by itself."""

    number: int
    """The segment's number in its shard."""

    path: Path
    """The file to write."""

    seed: int
    block_rows: int
    """Consecutive rows to draw together."""

    pairs: int
    """Its pairs, approximately."""

    scores: tuple[str, ...]
    """The scores that the pairs have."""

    def __len__(self) -> int:
        return self.pairs


def shuffle(
    seed: int,
    task: str,
    pairs: list[int],
    space: Workspace,
    stages: Stages,
    *,
    scores: tuple[str, ...] = (),
) -> None:
    """Write the missing segments of a shuffled shard; then remove the unshuffled segments.

    Args:
        seed: Seed of the order.
        task: The task.
        pairs: (segments,) pairs of each of its segments in the order of the text.
        space: The folder of the segments to read and to write.
        stages: The processes.
        scores: The scores that the pairs have.
    """
    parts = tuple(space.unshuffled(task, number) for number in range(len(pairs)))
    for _ in stages.run("shuffle", run_shuffle_job, _jobs(seed, task, parts, sum(pairs), space, scores)):
        pass
    for part in parts:
        for path in (part, *(score_path(part, name) for name in scores)):
            path.unlink(missing_ok=True)


def run_shuffle_job(job: ShuffleJob) -> None:
    """Write one segment of the shuffled shard."""
    src, tgt = _slices(job)
    order = random_order(stream_key(job.seed, "shuffle", job.path.parent.name, job.number), len(src))
    src = src.take(order)  # one side after the other: three arrays in memory, not four
    tgt = tgt.take(order)
    job.path.parent.mkdir(exist_ok=True)
    write_scores(job.path, {name: _scores(job, name)[order] for name in job.scores})
    write_segment(job.path, src, tgt, block_rows=job.block_rows)


def _jobs(
    seed: int, task: str, parts: tuple[Path, ...], pairs: int, space: Workspace, scores: tuple[str, ...]
) -> Iterator[ShuffleJob]:
    for number in range(len(parts)):
        path = segment_path(shard_path(space.folder, "train", task), number)
        if not path.exists():
            yield ShuffleJob(
                parts=parts,
                number=number,
                path=path,
                seed=seed,
                block_rows=BLOCK_ROWS,
                pairs=pairs // len(parts),
                scores=scores,
            )


def _slices(job: ShuffleJob) -> tuple[Ragged, Ragged]:
    """Read the segment's slice of each segment in the order of the text."""
    slices = [_slice(SegmentFile.open(path), job.number, len(job.parts)) for path in job.parts]
    src, tgt = (Ragged.concatenate([both[side] for both in slices]) for side in (0, 1))
    return src, tgt


def _slice(file: SegmentFile, number: int, slices: int) -> tuple[Ragged, Ragged]:
    """Read one of `slices` nearly equal parts of a segment's rows."""
    start, stop = _bounds(file.info.pairs, number, slices)
    return Stretch(file=file, start=start, stop=stop).take(np.arange(start, stop))


def _scores(job: ShuffleJob, name: str) -> Scores:
    """Read a score of the rows in the slices of all segments."""
    every = [read_scores(score_path(part, name)) for part in job.parts]
    slices = [slice(*_bounds(len(scores), job.number, len(job.parts))) for scores in every]
    return np.concatenate([scores[rows] for scores, rows in zip(every, slices, strict=True)])


def _bounds(pairs: int, number: int, slices: int) -> tuple[int, int]:
    return pairs * number // slices, pairs * (number + 1) // slices
