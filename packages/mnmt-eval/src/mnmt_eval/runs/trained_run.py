"""A trained run, its data and its model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from pathlib import Path

import numpy as np

from mnmt_data.store import PreparedData
from mnmt_eval.translate.translator import LEAST_MAX_SOURCE
from mnmt_model import LoadedRun, load_run, write_expert_loads
from mnmt_model.runs import RunRecord, mixture_names
from mnmt_model.runs.load import OpenedRun, open_checkpoint

LONG_SOURCE = 0.99
"""The share of training sources that are no longer than the limit of a source."""

LENGTH_BLOCKS = 256
"""Blocks of 64 pairs whose source lengths are read, of all tasks together."""


@dataclass(frozen=True, kw_only=True)
class TrainedRun:
    """A run at a checkpoint, with the data that it was trained on."""

    folder: Path
    opened: OpenedRun
    data: PreparedData

    @cached_property
    def loaded(self) -> LoadedRun:
        """The run with its model, whose weights are read when it is first used.

        Raises:
            RunError: If they cannot be read.
        """
        return load_run(self.opened.checkpoint)

    @cached_property
    def max_source(self) -> int:
        """The largest number of tokens of a source; few in training are longer."""
        return longest_source(self.data, drawn_weights(self.opened.record, self.opened.progress.step))


def open_run(path: Path) -> TrainedRun:
    """Open a run and its data.

    Args:
        path: The run's folder, for its newest checkpoint; or a checkpoint, or an average of checkpoints.

    Raises:
        RunError: If the run cannot be opened, or its data now have another vocabulary.
        DataError: If its data cannot be opened.
    """
    opened = open_checkpoint(path)
    return TrainedRun(folder=path, opened=opened, data=opened.open_data())


def count_experts(run: TrainedRun, testset: str, task: str, *, device: str = "cpu") -> None:
    """Write which experts the tokens of a test set choose, into the run's folder, if its model has any.

    Args:
        run: The run; its model is loaded if the file is not there already.
        testset: The test set.
        task: The task.
        device: The device that computes.

    Raises:
        RunError: If the run cannot be loaded.
        DataError: If its data cannot be read.
    """
    if mixture_names(run.opened.record.model):
        write_expert_loads(
            run.opened,
            run.data,
            testset=testset,
            task=task,
            model=lambda: run.loaded.model.translation_model.to(device),
        )


def longest_source(data: PreparedData, weights: Mapping[str, float]) -> int:
    """Return the limit of a source: the quantile of `LONG_SOURCE` of the training sources' tokens.

    Args:
        data: The data that a run was trained on.
        weights: {task: the share in which its pairs were drawn}; tasks without training pairs are left out.

    Returns:
        Tokens, tag and `</s>` included; the data's `max_length` if no task has training pairs.

    Raises:
        DataError: If the token ids are missing or broken.
    """
    weights = {task: weight for task, weight in weights.items() if weight > 0 and task in data.tasks}
    if not weights:
        return data.max_length
    total = sum(weights.values())
    lengths, shares = [], []
    for task, weight in weights.items():
        src, _ = data.shard("train", task).sample_lengths(ceil(LENGTH_BLOCKS * weight / total))
        lengths.append(src)
        shares.append(np.full(len(src), weight / total / len(src)))
    sources, order = np.concatenate(lengths), np.argsort(np.concatenate(lengths), kind="stable")
    reached = np.cumsum(np.concatenate(shares)[order])
    limit = sources[order][np.searchsorted(reached, LONG_SOURCE * reached[-1])]
    return max(LEAST_MAX_SOURCE, int(limit))


def drawn_weights(record: RunRecord, step: int) -> dict[str, float]:
    """Return {task: weight} of a run's mixture, averaged over its steps up to `step` where it changes."""
    later = record.config["train"].get("mixing", {}).get("phases", ())
    phases = [(0, record.mixture), *((phase["step"], phase["weights"]) for phase in later)]
    ends = [*(start for start, _ in phases[1:]), step]
    sums = dict.fromkeys(record.mixture, 0.0)
    for (start, weights), end in zip(phases, ends, strict=True):
        for task, weight in weights.items():
            sums[task] += weight * max(0, min(end, step) - start)
    return sums if any(sums.values()) else dict(record.mixture)
