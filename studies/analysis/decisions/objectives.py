"""Losses of the target at any weight, what may be wanted of them, and the advice to be judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.interpolate import PchipInterpolator
from scipy.optimize import isotonic_regression

from mnmt_laws import Forecast, recommend
from mnmt_laws.answers.decision import Want
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


@dataclass(frozen=True, kw_only=True)
class Objective:
    """A want of the tool, by which all methods are judged.

    The known irreducible losses only add a constant, so that the mean of reducible losses has the same best
    mixture and the same regret as the mean of losses.
    """

    name: str

    want: Want

    @property
    def needs_levels(self) -> bool:
        """Whether losses must be those of the target's size, and not of a smaller one."""
        return self.want.aim != "mean"

    def costs(self, losses: Array) -> Array:
        """Return (mixtures,) costs of losses (mixtures, tasks), infinite where a mixture is unknown."""
        known = np.isfinite(losses).all(axis=1)
        values, tasks = losses[known].T[None], list(self.want.importance)
        costs = np.full(len(losses), np.inf)
        costs[known] = self.want.costs(values, self.want.anchors(values, values[..., 0], tasks), tasks)[0]
        return costs

    def choose(self, losses: Array) -> int:
        """Return the row of the best mixture; a row of infinities is a mixture that nobody knows."""
        return int(np.argmin(self.costs(losses)))


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
    """(mixtures, tasks) predicted or measured losses, infinite where unknown."""

    forecast: Forecast | None = None
    """What the tool's choice rests on."""

    row: int = 0
    """The mixture, where there are neither losses nor a forecast."""

    by_importance: bool = False
    """Whether the weights are the importance of the tasks instead."""

    trained: bool = False
    """Whether the model of the chosen mixture is among the runs."""

    proxy: bool = False
    """Whether the losses are those of models of another size, whose levels say nothing of the target's."""

    law: str = ""
    """The law that was fitted, or why none was."""

    def choose(self, objective: Objective, problem: Problem) -> tuple[int, float]:
        """Return the mixture for an objective, and the regret that is stated of it; NaN where none is."""
        want = objective.want
        if self.forecast is not None:
            choice = recommend(
                self.forecast, aim=want.aim, preference=want.importance, targets=want.targets or None,
                least_weight=float(problem.mixtures.min()),
            )  # fmt: skip
            return problem.row_of(np.array([choice.weights[task] for task in problem.tasks])), choice.regret
        if self.by_importance:
            return problem.row_of(np.array([want.importance[task] for task in problem.tasks])), np.nan
        return (self.row if self.losses is None else objective.choose(self.losses)), np.nan
