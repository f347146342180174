"""Losses of the target at any weight, what may be wanted of them, and the advice to be judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pandas as pd
from scipy.interpolate import PchipInterpolator
from scipy.optimize import isotonic_regression

from mnmt_laws.arrays import Array


@dataclass(frozen=True, kw_only=True)
class TaskCurve:
    """A task's loss over its weight: a monotone cubic of log (L - irreducible) over log p.

    A power law of the weight is a straight line in these coordinates. Nodes that noise has put in the wrong
    order are replaced by their mean (isotonic regression).
    """

    weights: Array
    """(points,) ascending, above 0."""

    logs: Array
    """(points,) mean over seeds of log (L - irreducible), L in nats per token."""

    error: float
    """Standard error of these means, pooled over the weights; NaN without seeds."""

    irreducible: float = 0.0

    @property
    def losses(self) -> Array:
        """The measured losses, in nats per token."""
        return np.asarray(self.irreducible + np.exp(self.logs))

    @property
    def error_at_half(self) -> float:
        """Standard error of the mean loss at p = 0.5, in nats per token."""
        return self.error * float(self.at(np.array([0.5]))[0] - self.irreducible)

    @property
    def nodes(self) -> Array:
        """The means where they fall, else averages of neighbours."""
        return np.asarray(isotonic_regression(self.logs, increasing=False).x)

    def at(self, weights: Array) -> Array:
        """Return the loss at some weights, in nats per token."""
        line = PchipInterpolator(np.log(self.weights), self.nodes, extrapolate=True)
        return self.irreducible + np.exp(line(np.log(weights)))

    def leave_one_out(self) -> Array:
        """Return (points - 2,) by how much the curve through the others misses each inner mean, in nats."""
        inner = range(1, len(self.weights) - 1)
        return np.array([self._without(i).at(self.weights[i]) - self.losses[i] for i in inner])

    def perturbed(self, rng: np.random.Generator) -> TaskCurve:
        """Return the curve through means that other seeds might have given."""
        return replace(self, logs=self.logs + self.error * rng.standard_normal(len(self.logs)))

    def _without(self, point: int) -> TaskCurve:
        others = np.arange(len(self.weights)) != point
        return replace(self, weights=self.weights[others], logs=self.logs[others])


def curves_of(rows: pd.DataFrame) -> dict[str, TaskCurve]:
    """Return each task's curve through its losses at all weights; rows are of one size and length."""
    trained = rows[rows["weight"].gt(0)]
    return {str(task): _curve(task_rows) for task, task_rows in trained.groupby("task")}


def _curve(rows: pd.DataFrame) -> TaskCurve:
    irreducible = float(np.nan_to_num(rows["irreducible"].median()))
    logs = np.log(rows["value"] - irreducible).groupby(rows["weight"])
    freedom = (logs.size() - 1).sum()
    spread = np.sqrt((logs.var() * (logs.size() - 1)).sum() / freedom) if freedom else np.nan
    return TaskCurve(
        weights=logs.mean().index.to_numpy(float),
        logs=logs.mean().to_numpy(float),
        error=float(spread / np.sqrt(logs.size().mean())),
        irreducible=irreducible,
    )


def losses_at(curves: Mapping[str, TaskCurve], mixtures: Array) -> Array:
    """Return (mixtures, tasks) losses at weights (mixtures, tasks), by the curves in their order."""
    return np.stack([curve.at(mixtures[:, task]) for task, curve in enumerate(curves.values())], axis=1)


def perturbed_losses(curves: Mapping[str, TaskCurve], mixtures: Array, *, count: int) -> Array:
    """Return (count, mixtures, tasks) losses by curves that other seeds might have given."""
    rng = np.random.default_rng(0)
    return np.stack(
        [
            losses_at({task: curve.perturbed(rng) for task, curve in curves.items()}, mixtures)
            for _ in range(count)
        ]
    )


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


@dataclass(frozen=True, kw_only=True)
class Problem:
    """The model to be trained once, and the mixtures that it may have."""

    tasks: tuple[str, ...]

    size: float
    """N, parameters."""

    tokens: float
    """D, target tokens of all tasks."""

    mixtures: Array
    """(mixtures, tasks) weights."""

    def row_of(self, weights: Array) -> int:
        """Return the mixture nearest to (tasks,) weights."""
        return int(np.abs(self.mixtures - weights).sum(axis=1).argmin())

    @property
    def equal(self) -> int:
        """The mixture of equal weights."""
        return self.row_of(np.full(len(self.tasks), 1.0 / len(self.tasks)))


@dataclass(frozen=True, kw_only=True)
class Advice:
    """What a method knows, and what it cost."""

    method: str

    flops: float = 0.0
    """FLOPs of the runs that it rests on."""

    losses: Array | None = None
    """(mixtures, tasks) predicted or measured losses, infinite where unknown; None where a rule decides."""

    row: int = 0
    """The mixture, where there are no losses."""

    trained: bool = False
    """Whether the model of the chosen mixture is among the runs."""

    proxy: bool = False
    """Whether the losses are those of models of another size, whose levels say nothing of the target's."""

    law: str = ""
    """The law that was fitted, or why none was."""

    def choose(self, objective: Objective) -> int:
        """Return the mixture for an objective."""
        return self.row if self.losses is None else objective.choose(self.losses)
