"""The shares in which tasks are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum, isfinite

import numpy as np
from numpy.typing import NDArray

SUM_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Mixture:
    """The probability with which each task is drawn, as given: never rounded; 0 means never.

    Raises:
        ValueError: if there is no task, a weight is negative or not finite, or the weights do not sum to 1.
    """

    weights: Mapping[str, float]
    """{task: weight}, in [0, 1], summing to 1 within 1e-6."""

    def __post_init__(self) -> None:
        for task, weight in self.weights.items():
            if not (isfinite(weight) and weight >= 0):
                raise ValueError(f"`weights` must be finite and not negative, but {task} has {weight}.")
        total = fsum(self.weights.values())
        if abs(total - 1) > SUM_TOLERANCE:
            raise ValueError(f"`weights` must sum to 1, but sum to {total:.9g}.")
        object.__setattr__(self, "weights", {task: float(weight) for task, weight in self.weights.items()})

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks, in the order in which they were given."""
        return tuple(self.weights)

    def choose(self, units: NDArray[np.float64]) -> NDArray[np.int64]:
        """One multinomial choice a number: the task whose interval of the cumulative weights holds it.

        Args:
            units: (n,) uniform numbers in [0, 1).

        Returns:
            (n,) indices into `tasks`.
        """
        cumulative = np.cumsum(np.fromiter(self.weights.values(), dtype=np.float64))
        return np.searchsorted(cumulative / cumulative[-1], units, side="right")
