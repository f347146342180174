"""What a practitioner wants of a mixture, and how much a choice loses against the best one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mnmt_laws.arrays import Array


class Objective(Protocol):
    """Which of some mixtures is best by their losses (mixtures, tasks), in nats per token."""

    @property
    def name(self) -> str:
        """Its name in tables and figures."""

    @property
    def needs_levels(self) -> bool:
        """Whether losses must be those of the target's size, and not of a smaller one."""

    def choose(self, losses: Array) -> int:
        """Return the row of the best mixture; a row of infinities is a mixture that nobody knows."""

    def regret(self, losses: Array, row: int) -> float:
        """Return how many nats per token a mixture loses against the best, by the true losses."""


@dataclass(frozen=True, kw_only=True)
class Preference:
    """The least Σ_i λ_i L_i.

    The known irreducible losses only add a constant, so that the mean of reducible losses has the same best
    mixture and the same regret as the mean of losses.
    """

    name: str

    factors: tuple[float, ...]
    """λ of each task, summing to 1."""

    needs_levels: bool = False

    def choose(self, losses: Array) -> int:
        """Return the row of the least sum."""
        return int(np.argmin(self._sums(losses)))

    def regret(self, losses: Array, row: int) -> float:
        """Return by how much a row's sum exceeds the least."""
        sums = self._sums(losses)
        return float(sums[row] - sums.min())

    def _sums(self, losses: Array) -> Array:
        return np.asarray(losses @ np.array(self.factors))


@dataclass(frozen=True, kw_only=True)
class Target:
    """The second of two tasks at its least loss where the first one's is at most `most`.

    Where no mixture meets that, the first one's least.
    """

    name: str

    most: float
    """Loss that the first of two tasks may have, nats per token."""

    needs_levels: bool = True

    def choose(self, losses: Array) -> int:
        """Return the row that meets the target with the least other loss, else the least first loss."""
        meets = losses[:, 0] <= self.most
        return int(np.argmin(np.where(meets, losses[:, 1], np.inf) if meets.any() else losses[:, 0]))

    def regret(self, losses: Array, row: int) -> float:
        """Return by how much a row misses the target, plus what the other task loses against the best row."""
        missed = max(losses[row, 0] - self.most, 0.0)
        return float(missed + max(losses[row, 1] - losses[self.choose(losses), 1], 0.0))


@dataclass(frozen=True, kw_only=True)
class Worst:
    """The least loss of the task that has the greatest."""

    name: str
    needs_levels: bool = True

    def choose(self, losses: Array) -> int:
        """Return the row of the least greatest loss."""
        return int(np.argmin(losses.max(axis=1)))

    def regret(self, losses: Array, row: int) -> float:
        """Return by how much a row's greatest loss exceeds the least."""
        greatest = losses.max(axis=1)
        return float(greatest[row] - greatest.min())
