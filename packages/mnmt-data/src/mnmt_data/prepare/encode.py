"""The fourth stage: selected pairs as token ids, in segments."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mnmt_data.errors import DataError
from mnmt_data.prepare.clean import CleanedSplits
from mnmt_data.prepare.config import DataConfig
from mnmt_data.prepare.inputs import Inputs
from mnmt_data.prepare.segment_job import EncodedSegment, SegmentJob, run_segment_job
from mnmt_data.prepare.shuffle import SHUFFLED_PAIRS, shuffle
from mnmt_data.prepare.splits import parts_of, split_rows
from mnmt_data.prepare.stages import Stages
from mnmt_data.prepare.workspace import Workspace
from mnmt_data.store.corpus_folder import read_lines
from mnmt_data.store.prepared import shard_path
from mnmt_data.store.shards import write_loss_weights

SEGMENT_PAIRS = 1_000_000
"""Training pairs after which a segment ends, at the end of a part."""

LocalRows = tuple[tuple[Path, NDArray[np.int64]], ...]
"""((part, rows of it), …), in order."""

Shards = dict[tuple[str, str], tuple[str, ...]]
"""{(split, direction in which a shard is stored): the tasks that read it}."""

EncodedSplits = dict[str, dict[str, list[EncodedSegment]]]
"""{split: {direction in which a shard is stored: its segments}}."""


def tasks_to_shuffle(config: DataConfig, space: Workspace) -> frozenset[str]:
    """Return the tasks whose shards are shuffled: those of more than `SHUFFLED_PAIRS` training pairs."""
    stored = [task for task in config.tasks if space.split_path("train", task).exists()]
    rows = {task: split_rows(space, "train", task) for task in stored}
    return frozenset(task for task, mask in rows.items() if np.count_nonzero(mask) > SHUFFLED_PAIRS)


def encode(
    config: DataConfig, inputs: Inputs, parts: CleanedSplits, space: Workspace, stages: Stages
) -> EncodedSplits:
    """Write the segments that are missing, and the text of dev and test sets; shuffle large training shards.

    A large shard is shuffled before the next one is encoded, so that only one at a time is on disk twice.

    Raises:
        DataError: If `max_length` leaves no training pairs of a task.
    """
    shards, large = _shards(config, inputs, space), tasks_to_shuffle(config, space)
    to_shuffle = {("train", task): shards["train", task] for task in config.tasks if task in large}
    in_order = {place: tasks for place, tasks in shards.items() if place not in to_shuffle}
    encoded = _encode(config, parts, space, stages, in_order)
    for (split, task), tasks in to_shuffle.items():
        encoded |= _encode(config, parts, space, stages, {(split, task): tasks}, shuffle_seed=config.seed)
        pairs = [segment.pairs for segment in encoded[split, task]]
        shuffle(config.seed, task, pairs, space, stages, scores=tuple(config.scores))
    splits: EncodedSplits = {}
    for split, task in shards:
        splits.setdefault(split, {})[task] = encoded[split, task]
    return splits


def _encode(
    config: DataConfig,
    parts: CleanedSplits,
    space: Workspace,
    stages: Stages,
    shards: Shards,
    *,
    shuffle_seed: int | None = None,
) -> dict[tuple[str, str], list[EncodedSegment]]:
    """Write the missing segments of some shards; return the counts of all segments."""
    segments: dict[tuple[str, str], int] = {}
    jobs = _jobs(config, parts, space, shards, shuffle_seed, segments)
    for _ in stages.run("encode", run_segment_job, jobs):
        pass
    encoded = {}
    for (split, task), number in segments.items():
        marks = [space.mark(f"encoded/{split}.{task}.{segment:05}") for segment in range(number)]
        encoded[split, task] = [EncodedSegment.from_dict(mark) for mark in marks]
        if split == "train" and not any(segment.pairs for segment in encoded[split, task]):
            raise DataError(
                f"[data] leaves no training pairs of {task}; make `max_length` ({config.max_length}) larger."
            )
    return encoded


def _jobs(
    config: DataConfig,
    parts: CleanedSplits,
    space: Workspace,
    shards: Shards,
    shuffle_seed: int | None,
    segments: dict[tuple[str, str], int],
) -> Iterator[SegmentJob]:
    """Yield the jobs of missing segments; count all segments of each shard in `segments`."""
    for (split, task), tasks in shards.items():
        for number, rows in enumerate(_segment_rows(parts, space, split, task)):
            segments[split, task] = number + 1
            job = SegmentJob(
                space=space,
                split=split,
                task=task,
                number=number,
                rows=rows,
                tasks=tasks,
                max_length=config.max_length,
                target_tag=config.target_tag,
                shuffle_seed=shuffle_seed,
                scores=tuple(config.scores) if split == "train" else (),
            )
            if space.mark(job.mark) is None:
                yield job


def _shards(config: DataConfig, inputs: Inputs, space: Workspace) -> Shards:
    """Return all shards; zero-shot tasks neither have nor read a training shard."""
    shards: Shards = {}
    for split in dict.fromkeys(("train", "dev", "test", *config.files, *config.test_corpora)):
        tasks = config.tasks if split == "train" else config.evaluated
        for task in tasks:
            if space.split_path(split, task).exists():
                readers = inputs.readers_of(split, task)
                shards[split, task] = tuple(reader for reader in readers if reader in tasks)
    return shards


def _segment_rows(parts: CleanedSplits, space: Workspace, split: str, task: str) -> Iterator[LocalRows]:
    """Yield the rows of each segment: of train about `SEGMENT_PAIRS`, of other splits all."""
    pairs, selected = parts_of(parts, split, task), split_rows(space, split, task)
    segment: list[tuple[Path, NDArray[np.int64]]] = []
    for path, start, stop in zip(pairs.paths, pairs.starts[:-1], pairs.starts[1:], strict=True):
        segment.append((path, _local_rows(selected, start, stop)))
        if split == "train" and sum(len(rows) for _, rows in segment) >= SEGMENT_PAIRS:
            yield tuple(segment)
            segment = []
    if segment:
        yield tuple(segment)


def _local_rows(selected: NDArray[Any], start: int, stop: int) -> NDArray[np.int64]:
    """Return the selected rows in [start, stop), counted from `start`."""
    if selected.dtype == np.bool_:
        return np.flatnonzero(selected[start:stop])
    return selected[slice(*np.searchsorted(selected, (start, stop)))] - start


def write_weights(inputs: Inputs, splits: EncodedSplits, space: Workspace) -> None:
    """Write the weights of pairs that stand for a whole distribution beside their segments.

    Raises:
        DataError: If a file does not have a number for each pair.
    """
    for (testset, task), path in inputs.weights.items():
        pairs = sum(segment.pairs for segment in splits[testset][task])
        try:
            weights = np.array(read_lines(path), dtype=np.float64)
        except ValueError:
            weights = np.empty(0)
        if len(weights) != pairs or not (weights >= 0).all() or not weights.any():
            message = f"must have a weight of at least 0 for each of the {pairs} pairs, a line each."
            raise DataError(f"{path}: {message}")
        write_loss_weights(shard_path(space.folder, testset, task), weights)
