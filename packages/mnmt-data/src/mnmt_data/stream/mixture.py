"""The shares in which tasks are drawn, and their schedule over steps."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from math import fsum, isfinite
from typing import Any

SUM_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Mixture:
    """The probability with which each task is drawn, never rounded; 0 means never.

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
        """Return weights in proportion to sizes^(1/T): proportional at T = 1, more even for larger T.

        Args:
            sizes: {task: its pairs}, or any other measure of size.
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
    def parse(cls, text: str) -> Mixture:
        """Return the mixture of ratios such as `en-de:3,en-fr:1`.

        Raises:
            ValueError: If the text is none, names a task twice, or all its ratios are 0.
        """
        items = [item.strip().rpartition(":") for item in text.split(",")]
        try:
            ratios = {task.strip(): float(ratio) for task, _, ratio in items}
            if "" in ratios or len(ratios) < len(items):
                raise ValueError
            return cls({task: ratio / fsum(ratios.values()) for task, ratio in ratios.items()})
        except (ValueError, ZeroDivisionError):
            raise ValueError(f"must be ratios such as 'en-de:3,en-fr:1', but is {text!r}.") from None

    @classmethod
    def proportional(cls, sizes: Mapping[str, int]) -> Mixture:
        """Return weights in proportion to sizes."""
        return cls.tempered(sizes, 1.0)

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks, in the order in which they were given."""
        return tuple(self.weights)


@dataclass(frozen=True, kw_only=True)
class Phase:
    """Consecutive steps with the same sampling settings.

    Raises:
        ValueError: If a field is out of its range.
    """

    mixture: Mixture
    """The probability with which each task is drawn."""

    step: int = 0
    """The first step; the phase lasts until the next one begins."""

    loss_weights: Mapping[str, float] = field(default_factory=dict)
    """{task: the weight of its pairs' loss}; 1 for absent tasks."""

    def __post_init__(self) -> None:
        if self.step < 0:
            raise ValueError(f"`step` must not be negative, but is {self.step}.")
        if unknown := sorted(set(self.loss_weights) - set(self.mixture.tasks)):
            raise ValueError(f"`loss_weights` must be of tasks of the mixture, but one is {unknown[0]!r}.")
        for task, weight in self.loss_weights.items():
            if not (isfinite(weight) and weight >= 0):
                raise ValueError(f"`loss_weights` must be finite and not negative, but {task} has {weight}.")


def explicit_scalarization(mixture: Mixture) -> Phase:
    """Return the phase that draws all tasks equally and weights their losses (Fernandes et al. 2023, eq. 4).

    Each of K tasks of positive weight p is drawn with probability 1/K, and its pairs' loss is weighted by
    K·p, so that the expected loss is Σ p_i L_i, as if tasks were drawn with probability p_i.
    """
    positive = {task: weight for task, weight in mixture.weights.items() if weight > 0}
    even = {task: 1 / len(positive) if task in positive else 0.0 for task in mixture.tasks}
    return Phase(
        mixture=Mixture(even),
        loss_weights={task: weight * len(positive) for task, weight in positive.items()},
    )


@dataclass(frozen=True)
class Schedule:
    """Phases in the order of their first steps.

    Raises:
        ValueError: If there is no phase, the first does not start at step 0, two start at one step, or their
            tasks differ.
    """

    phases: tuple[Phase, ...]

    def __post_init__(self) -> None:
        if not self.phases or self.phases[0].step != 0:
            raise ValueError("`phases` must begin with one at step 0.")
        for one, other in pairwise(self.phases):
            if one.step >= other.step:
                raise ValueError(
                    f"`phases` must start one after the other, but one at step {other.step} does not."
                )
            if one.mixture.tasks != other.mixture.tasks:
                raise ValueError(
                    "`phases` must have the same tasks in the same order; give weight 0 to those not drawn."
                )

    @classmethod
    def constant(cls, mixture: Mixture) -> Schedule:
        """Return the schedule with the same weights at every step (implicit scalarization)."""
        return cls((Phase(mixture=mixture),))

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks of every phase."""
        return self.phases[0].mixture.tasks

    @property
    def tasks_drawn(self) -> tuple[str, ...]:
        """The tasks that have a positive weight in a phase."""
        return tuple(task for task in self.tasks if any(phase.mixture.weights[task] for phase in self.phases))

    def index(self, step: int) -> int:
        """Return the index of the phase that a step belongs to."""
        return bisect_right([phase.step for phase in self.phases], step) - 1

    def describe(self) -> list[dict[str, Any]]:
        """Return the schedule as plain values that identify it."""
        return [
            {
                "mixture": asdict(phase.mixture),
                "step": phase.step,
                "loss_weights": dict(phase.loss_weights),
            }
            for phase in self.phases
        ]
