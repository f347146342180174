"""The length from which on a source is too long, from a sample of the pairs that a run was trained on."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

import numpy as np

from mnmt_data.store import PreparedData
from mnmt_eval.translate.translator import LEAST_MAX_SOURCE
from mnmt_model.runs import RunRecord

LONG_SOURCE = 0.99
"""The share of training sources that are no longer than the limit of a source."""

LENGTH_BLOCKS = 256
"""Blocks of 64 pairs whose source lengths are read, of all tasks together."""


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
