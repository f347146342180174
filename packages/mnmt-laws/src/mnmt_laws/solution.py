"""What passes between `fit` and the laws: one task's data, and its parameters for every refit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from mnmt_laws.errors import TableError
from mnmt_laws.objective import Array

MIN_SIZES = 3
"""Sizes that β, α and L∞ need: two leave the exponent unidentified."""


@dataclass(frozen=True, kw_only=True)
class TaskSample:
    """One task's n observations, and their perturbed copies."""

    task: str

    size: Array
    """(n,) parameters."""

    weight: Array
    """(n,) share of the training mixture, above 0."""

    values: Array
    """(1 + refits, n) the observed values, then each refit's."""

    rising: bool

    @property
    def pivot(self) -> float:
        """Geometric mean of the sizes: factors there hardly correlate with exponents."""
        return float(np.exp(np.log(self.size).mean()))

    @property
    def weights(self) -> Array:
        """Distinct weights, ascending."""
        return np.unique(self.weight)

    def num_sizes(self, weight: float) -> int:
        """Distinct sizes observed at `weight`."""
        return len(np.unique(self.size[self.weight == weight]))

    def at(self, weight: float) -> TaskSample:
        """The observations at one weight."""
        here = self.weight == weight
        return TaskSample(
            task=self.task,
            size=self.size[here],
            weight=self.weight[here],
            values=self.values[:, here],
            rising=self.rising,
        )

    def require_sizes(self) -> None:
        """Raise TableError unless some weight was observed at three sizes or more."""
        most = max(self.num_sizes(weight) for weight in self.weights)
        if most < MIN_SIZES:
            raise TableError(
                f"{self.task}: a law needs at least {MIN_SIZES} sizes at one weight, but has {most}; "
                f"with fewer its exponent is not identified. Add runs of other sizes."
            )


@dataclass(frozen=True, kw_only=True)
class Solution:
    """A law's parameters for one task."""

    parameters: xr.Dataset
    """Variables over `draw` (the estimate, then the refits) and, where they vary with it, `weight`."""

    converged: bool
    """Whether the search for the estimate ended at a minimum."""

    warnings: tuple[str, ...] = ()
