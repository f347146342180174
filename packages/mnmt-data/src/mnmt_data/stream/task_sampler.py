"""Draw the task of each position of a stream, and count each task's draws before any position.

Sequential draws would have to be counted from the beginning. Here the counts are drawn first. Those of a
super-block of 2^29 positions are multinomial; those of the first half of a block are multivariate
hypergeometric given the block's; a leaf's tasks are a random order of its counts. This is exactly the
distribution of independent draws, and reaches any position in 17 splits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mnmt_data.counter_rng import random_order, stream_key
from mnmt_data.stream.mixture import Mixture

Counts = NDArray[np.int64]
Labels = tuple[int | str, ...]

SUPER_BLOCK = 2**29
"""Positions whose counts are drawn at once; numpy's hypergeometric sampler takes less than 10^9."""

LEAF = 2**12
"""Positions whose order is drawn at once."""


@dataclass(frozen=True, kw_only=True)
class TaskSampler:
    """The tasks drawn at positions 0, 1, 2, …: a pure function of the fields, computed for any stretch."""

    mixture: Mixture
    """The probability of each task."""

    seed: int
    """Seed of the choices."""

    labels: Labels
    """Labels that distinguish streams with the same seed."""

    def tasks(self, start: int, count: int) -> NDArray[np.int64]:
        """Return the tasks of positions `start` to `start + count`: (count,) indices into `mixture.tasks`."""
        first, end = start // LEAF, -(-(start + count) // LEAF)
        leaves = [self._leaf(number) for number in range(first, end)]
        skip = start - first * LEAF
        return np.concatenate([np.empty(0, dtype=np.int64), *leaves])[skip : skip + count]

    def before(self, position: int) -> Counts:
        """Return how often each task is drawn before `position`: (tasks,), summing to `position`."""
        number, rest = divmod(position, LEAF)
        before, _ = self._descend(number)
        every = np.bincount(self._leaf(number)[:rest], minlength=len(self.mixture.tasks))
        every[self._positive_tasks] += before
        return every

    def _leaf(self, number: int) -> NDArray[np.int64]:
        """Return the tasks of a leaf's positions: (LEAF,)."""
        _, counts = self._descend(number)
        order = random_order(stream_key(self.seed, *self.labels, "leaf", number), LEAF)
        return np.repeat(self._positive_tasks, counts)[order]

    def _descend(self, leaf: int) -> tuple[Counts, Counts]:
        """Return the counts of each task of positive weight: before a leaf, and in it."""
        # Of a block with counts n, the counts of its first half are hypergeometric given n, and those of the
        # second half are n less these: 17 halvings lead from 2^29 positions to a leaf of 2^12.
        position, size = leaf * LEAF, SUPER_BLOCK
        block = position // size
        totals = _super_blocks(self.seed, self.labels, self._shares, block + 1)
        before, block_counts, start = totals[:block].sum(axis=0), totals[block], block * size
        while size > LEAF:
            size //= 2
            left = _first_half(self.seed, self.labels, start, size, tuple(block_counts.tolist()))
            if position < start + size:
                block_counts = left
            else:
                before, block_counts, start = before + left, block_counts - left, start + size
        return before, block_counts

    @property
    def _positive_tasks(self) -> NDArray[np.int64]:
        return np.array([i for i, weight in enumerate(self.mixture.weights.values()) if weight > 0])

    @property
    def _shares(self) -> tuple[float, ...]:
        positive = [weight for weight in self.mixture.weights.values() if weight > 0]
        return tuple(weight / sum(positive) for weight in positive)


@lru_cache(maxsize=16)
def _super_blocks(seed: int, labels: Labels, shares: tuple[float, ...], count: int) -> Counts:
    """Return the counts of the first super-blocks: (count, tasks)."""
    counts: Counts = _generator(seed, *labels, "super-blocks").multinomial(SUPER_BLOCK, shares, size=count)
    return counts


@lru_cache(maxsize=256)
def _first_half(seed: int, labels: Labels, start: int, half: int, counts: tuple[int, ...]) -> Counts:
    """Draw the counts of the first half of 2 · `half` positions from `start`, given those of both halves."""
    generator = _generator(seed, *labels, "split", start, half)
    first: Counts = generator.multivariate_hypergeometric(counts, half, method="marginals")
    return first


def _generator(seed: int, *labels: int | str) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=stream_key(seed, *labels)))
