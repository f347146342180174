"""What people want of a mixture, as a cost in the metric's unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError
from mnmt_laws.tables.observations import Observations

Aim = Literal["mean", "worst", "relative", "targets"]
"""`mean`: the least Σ λ_i L_i; `worst`: the least of the greatest loss; `relative`: the least of the greatest
loss over that of a model of the task alone; `targets`: losses that tasks should reach."""


def intended(
    observations: Observations,
    *,
    aim: Aim | None,
    preference: Mapping[str, float] | None,
    targets: Mapping[str, float] | None,
) -> tuple[Aim, Mapping[str, float] | None]:
    """Return the aim and λ that were given, `targets` where there are; where nothing was, the study's goal.

    Raises:
        ArgumentError: If the aim is `targets`, and there are none.
    """
    goal = observations.goal
    if targets:
        return "targets", preference
    if aim == "targets":
        raise ArgumentError("`aim` is targets, but there are none; give `targets`.")
    if goal is None or aim is not None or preference is not None:
        return aim or "mean", preference
    return goal.aim, goal.preference(observations.tasks)


@dataclass(frozen=True, kw_only=True)
class Want:
    """An aim, and its numbers."""

    aim: Aim = "mean"

    importance: Mapping[str, float]
    """λ of each task, summing to 1."""

    targets: Mapping[str, float] = field(default_factory=dict)
    """The metric that tasks should reach."""

    sign: int = 1
    """1 where less is better; -1 for metrics that rise, which come as negative numbers."""

    def anchors(self, losses: Array, alone: Array, tasks: list[str]) -> Array:
        """Return what costs are measured from, (draws, ...): see `costs`.

        Args:
            losses: (draws, tasks, n) at mixtures all over the simplex, less is better.
            alone: (draws, tasks) of a model of each task alone.
            tasks: Their names, in order.
        """
        if self.aim == "relative":
            return alone
        if self.aim != "targets":
            return np.zeros((len(losses), 1))
        missed, rest = self.missed(losses, tasks), self._rest(losses, tasks)
        met = missed <= missed.min(axis=1, keepdims=True) + 1e-12
        return np.asarray(np.where(met, rest, np.inf).min(axis=1, keepdims=True))

    def costs(self, losses: Array, anchors: Array, tasks: list[str]) -> Array:
        """Return (draws, n) costs of mixtures, in the metric's unit; of `relative`, as a share of the loss.

        The cost of targets is the sum of what is missed, and what the other tasks lose against the best
        mixture that meets the targets, by their importance.

        Args:
            losses: (draws, tasks, n), less is better.
            anchors: As `anchors` returns them.
            tasks: The tasks, in order.
        """
        if self.aim == "worst":
            return np.asarray(losses.max(axis=1))
        if self.aim == "relative":
            return np.asarray(((losses - anchors[..., None]) / np.abs(anchors[..., None])).max(axis=1))
        if self.aim == "targets":
            return self.missed(losses, tasks) + np.maximum(self._rest(losses, tasks) - anchors, 0.0)
        return np.asarray(np.einsum("k,dkn->dn", self._factors(tasks), losses))

    def scatter(self, deviations: Array, losses: Array, tasks: list[str]) -> float:
        """Return the standard deviation of a run's cost.

        Args:
            deviations: (tasks,) of its losses.
            losses: (tasks,) its losses.
            tasks: The tasks, in order.
        """
        if self.aim == "worst":
            return float(deviations[losses.argmax()])
        if self.aim == "relative":
            return float((deviations / losses).max())
        return float(np.sqrt(np.sum((self._factors(tasks) * deviations) ** 2)))

    def _factors(self, tasks: list[str]) -> Array:
        return np.array([self.importance[task] for task in tasks])

    def missed(self, losses: Array, tasks: list[str]) -> Array:
        """Return (draws, n) the sum of what losses (draws, tasks, n) miss of the targets."""
        gaps = [
            np.maximum(losses[:, tasks.index(task)] - self.sign * target, 0.0)
            for task, target in self.targets.items()
        ]
        return np.asarray(np.sum(gaps, axis=0))

    def _rest(self, losses: Array, tasks: list[str]) -> Array:
        factors = np.array([0.0 if task in self.targets else self.importance[task] for task in tasks])
        total = factors.sum()
        return np.asarray(np.einsum("k,dkn->dn", factors / total if total else factors, losses))
