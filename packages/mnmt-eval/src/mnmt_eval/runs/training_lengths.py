"""Lengths of the pairs that a run was trained on, from a sample of them that takes no more than a moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil

import numpy as np

from mnmt_data import Ragged
from mnmt_data.store import PreparedData
from mnmt_eval.translate.expected_length import QUANTILE, Bytes, LeastLengths
from mnmt_eval.translate.translator import LEAST_MAX_SOURCE
from mnmt_model.runs import RunRecord

LONG_SOURCE = 0.99
"""The share of training sources that are no longer than the limit of a source."""

LENGTH_BLOCKS = 256
"""Blocks of 64 pairs whose source lengths are read, of all tasks together."""

PAIR_BLOCKS = 256
"""Blocks of 64 pairs of a task that are read for the ratio of target to source length."""


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
    changes = record.config["train"].get("mixing", {}).get("changes", ())
    phases = [(0, record.mixture), *((change["step"], change["weights"]) for change in changes)]
    ends = [*(start for start, _ in phases[1:]), step]
    sums = dict.fromkeys(record.mixture, 0.0)
    for (start, weights), end in zip(phases, ends, strict=True):
        for task, weight in weights.items():
            sums[task] += weight * max(0, min(end, step) - start)
    return sums if any(sums.values()) else dict(record.mixture)


@dataclass(frozen=True, kw_only=True)
class TrainingRatios:
    """The ratios of target to source length of the tasks of prepared data, each read when it is asked for."""

    data: PreparedData
    _known: dict[str, LeastLengths | None] = field(default_factory=dict)

    def of_task(self, task: str) -> LeastLengths | None:
        """Return the least lengths of translations of a task.

        A task without enough training pairs has the least ones of all tasks into its target language.

        Args:
            task: A language pair.

        Returns:
            The lengths; None if no task into this language has enough training pairs.

        Raises:
            DataError: If the token ids are missing or broken.
        """
        if task not in self._known:
            others = (other for other in self.data.tasks if other.split("-")[1:] == task.split("-")[1:])
            known = self._of_pairs(task) or [each for other in others for each in self._of_pairs(other)]
            self._known[task] = LeastLengths.least_of(known) if known else None
        return self._known[task]

    @cached_property
    def _token_bytes(self) -> Bytes:
        return self.data.vocab.token_bytes

    def _of_pairs(self, task: str) -> list[LeastLengths]:
        """Return the least lengths from the pairs of one task, if there are enough of them."""
        if task not in self.data.tasks or self.data.train_counts[task].pairs * QUANTILE < 1:
            return []
        src, tgt = (
            _num_bytes(side, self._token_bytes) for side in self.data.shard("train", task).sample(PAIR_BLOCKS)
        )
        return [LeastLengths.of_pairs(src, tgt)]


def _num_bytes(rows: Ragged, token_bytes: Bytes) -> Bytes:
    """Return the bytes of the text of each row, whose first word has no space before it."""
    before = np.concatenate([[0], np.cumsum(token_bytes[rows.values])])
    lengths: Bytes = before[rows.offsets[1:]] - before[rows.offsets[:-1]]
    return np.maximum(lengths - 1, 0)
