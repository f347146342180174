"""The shares in which tasks are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum, isfinite

SUM_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Mixture:
    """The probability with which each task is drawn, as given: never rounded; 0 means never.

    Raises:
        ValueError: If there is no task, a weight is negative or not finite, or the weights do not sum to 1.
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

    @classmethod
    def tempered(cls, sizes: Mapping[str, int], temperature: float) -> Mixture:
        """Weights in proportion to sizes^(1/T): proportional at T = 1, the more even the higher T is.

        Args:
            sizes: {task: its pairs}, or any other measure of how much there is.
            temperature: T, positive; `inf` for equal weights.

        Raises:
            ValueError: If T is not positive, or a size is not.
        """
        if not temperature > 0:
            raise ValueError(f"`temperature` must be positive, but is {temperature}.")
        if empty := [task for task, size in sizes.items() if not size > 0]:
            raise ValueError(f"`sizes` must be positive, but {empty[0]} has {sizes[empty[0]]}.")
        largest = max(sizes.values(), default=1)
        powers = {task: (size / largest) ** (1 / temperature) for task, size in sizes.items()}
        return cls({task: power / fsum(powers.values()) for task, power in powers.items()})

    @classmethod
    def proportional(cls, sizes: Mapping[str, int]) -> Mixture:
        """Weights in proportion to sizes."""
        return cls.tempered(sizes, 1.0)

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks, in the order in which they were given."""
        return tuple(self.weights)
