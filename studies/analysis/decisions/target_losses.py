"""The losses of the model that the practitioner cannot try out: measured at some weights, smooth between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

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
