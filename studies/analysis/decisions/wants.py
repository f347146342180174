"""What is wanted of two tasks, and what it costs at every mixture that may be chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.interpolate import PchipInterpolator

from mnmt_laws.answers.decision import Aim, Want
from mnmt_laws.arrays import Array

LEAST = 0.1
WEIGHTS = np.round(np.arange(LEAST, 1 - LEAST + 0.005, 0.01), 6)
"""Weights of the first task among which a method chooses, and the best is sought."""


@dataclass(frozen=True, kw_only=True)
class Wish:
    """A want of two tasks that are yet to be named."""

    name: str
    aim: Aim = "mean"
    importance: tuple[float, float] = (1, 1)
    times_alone: float = 1.0
    """With the aim `targets`: what the first task may lose, relative to a model of it alone."""

    @property
    def free(self) -> float:
        """The first task's weight that one takes without any model: its importance.

        That is equal weights where tasks count alike; with a target, the greatest weight.
        """
        greatest = float(WEIGHTS[-1])
        return greatest if self.aim == "targets" else self.importance[0] / sum(self.importance)

    def want(self, tasks: list[str], alone: Array) -> Want:
        """Return the want for tasks whose losses alone are known or predicted, (tasks,)."""
        shares = np.array(self.importance) / sum(self.importance)
        targets = {tasks[0]: self.times_alone * float(alone[0])} if self.aim == "targets" else {}
        return Want(aim=self.aim, importance=dict(zip(tasks, shares.tolist(), strict=True)), targets=targets)

    def costs(self, losses: Array, alone: Array, *, at: Array | None = None) -> Array:
        """Return (n,) costs, of the aim `relative` as a share of the loss, else in nats per token.

        Args:
            losses: (tasks, n) at `WEIGHTS`.
            alone: (tasks,) of models of each task alone.
            at: (tasks, m) other losses, whose (m,) costs are returned instead.
        """
        tasks = ["first", "second"]
        want = self.want(tasks, alone)
        anchors = want.anchors(losses[None], alone[None], tasks)
        return want.costs((losses if at is None else at)[None], anchors, tasks)[0]

    def best(self, rows: pd.DataFrame) -> float:
        """Return the best weight by trained models; losses between theirs are interpolated."""
        losses, alone = curves(
            {str(task): part.groupby("weight")["value"].mean() for task, part in rows.groupby("task")}
        )
        return float(WEIGHTS[self.costs(losses, alone).argmin()])


PREFERENCES = ((1, 1), (2, 1), (1, 2), (4, 1), (1, 4))
WISHES = (
    *(Wish(name=f"{one}:{other}", importance=(one, other)) for one, other in PREFERENCES),
    Wish(name="worst", aim="worst"),
    Wish(name="worst relative to alone", aim="relative"),
    Wish(name="first within 3% of alone", aim="targets", times_alone=1.03),
)
"""What was wanted of tables that were known when the methods were made."""


def curves(means: Mapping[str, pd.Series]) -> tuple[Array, Array]:
    """Return (tasks, n) losses at `WEIGHTS` and (tasks,) losses alone, by a monotone cubic over log p.

    Where no model was trained alone, the cubic goes on to p = 1.

    Args:
        means: Of each task, its loss by its weight.
    """
    curves = [PchipInterpolator(np.log(values.index), values) for values in means.values()]
    weights = (WEIGHTS, 1 - WEIGHTS)
    losses = [curve(np.log(p)) for curve, p in zip(curves, weights, strict=True)]
    return np.array(losses), np.array([float(curve(0.0)) for curve in curves])
