"""Choices judged by the losses of the target, which was trained at several weights with several seeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures
from mnmt_laws.arrays import Array
from studies.analysis.decisions.advice import IMPORTANCE
from studies.analysis.decisions.tables import Table, cost_of
from studies.analysis.decisions.wants import WEIGHTS, Wish, curves

DRAWS = 300
LEVEL = 0.95
WON = "can be won"
"""Whether the stake is above a run's scatter."""


class Truth:
    """A target's losses at all mixtures, by the means over seeds and by means that other seeds might give."""

    def __init__(self, rows: pd.DataFrame) -> None:
        """Take the rows of the target."""
        logs = np.log(rows["value"]).groupby([rows["task"], rows["weight"]])
        self.means, counts = logs.mean(), logs.size()
        spread = (logs.var() * (counts - 1)).groupby("task").sum() / (counts - 1).groupby("task").sum()
        self.scatter: Array = np.sqrt(spread.to_numpy(float))
        """(tasks,) the standard deviation of a run's log loss, pooled over weights."""
        errors = self.scatter[self.means.index.codes[0]] / np.sqrt(counts.to_numpy(float))
        rng = np.random.default_rng(0)
        noise = errors * rng.standard_normal((DRAWS, len(errors)))
        self.draws = [self._curves(shift) for shift in (np.zeros(len(errors)), *noise)]
        """The losses and the losses alone of each draw; the first is the measured one."""

    def _curves(self, shift: Array) -> tuple[Array, Array]:
        values = np.exp(self.means + shift)
        return curves({str(task): part.droplevel("task") for task, part in values.groupby("task")})

    def costs(self, wish: Wish) -> Array:
        """Return (1 + draws, n) costs at all weights."""
        return np.array([wish.costs(losses, alone) for losses, alone in self.draws])

    def run_scatter(self, wish: Wish) -> float:
        """Return the standard deviation of the cost of one run at the best weight."""
        losses, alone = self.draws[0]
        best = losses[:, wish.costs(losses, alone).argmin()]
        noise = self.scatter[:, None] * np.random.default_rng(1).standard_normal((len(best), 1000))
        return float(wish.costs(losses, alone, at=best[:, None] * np.exp(noise)).std(ddof=1))


def decisions_of(table: Table, advice: pd.DataFrame) -> Iterator[Figures]:
    """Yield each choice with its regret, the stake and a run's scatter, and its gains on p = λ by draw."""
    truth = Truth(table.judges)
    for wish in table.wishes:
        costs, scatter = truth.costs(wish), truth.run_scatter(wish)
        for _, rows in advice[advice["want"].eq(wish.name)].groupby(["small", "seed"], sort=False):
            free = _at(costs, float(rows.loc[rows["method"].eq(IMPORTANCE), "weight"].iloc[0]))
            stake = float(free[0] - costs[0].min())
            for row in rows.to_dict("records"):
                reached = _at(costs, row["weight"])
                yield row | {
                    "regret": float(reached[0] - costs[0].min()), "stake": stake, "scatter": scatter,
                    WON: stake > scatter, "best": float(WEIGHTS[costs[0].argmin()]), "gains": free - reached,
                }  # fmt: skip


def _at(costs: Array, weight: float) -> Array:
    """Return (draws,) costs at a weight, linear between those of the grid."""
    return np.array([np.interp(weight, WEIGHTS, row) for row in costs])


def summarise(decisions: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Return a row for each group and method.

    Columns: `count`, means of `stake`, `scatter`, `regret` and `stated`, the `gain` on p = λ with its
    interval over other seeds of the target, and `held`, in how many of those that state a regret it was at
    most twice as much.
    """
    rows = []
    for key, part in decisions.groupby([*by, "method"], sort=False):
        gains = np.mean(np.stack(part["gains"].to_list()), axis=0)
        lower, upper = np.quantile(gains[1:], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        known = part[part["stated"].notna()]
        means = part[["stake", "scatter", "regret", "stated"]].mean().to_dict()
        held = int((known["regret"] <= 2 * known["stated"]).sum())
        names = dict(zip([*by, "method"], key, strict=True))
        rows.append(
            names | {"count": len(part)} | means
            | {"gain": gains[0], "lower": lower, "upper": upper, "held": held, "of": len(known)}
        )  # fmt: skip
    return pd.DataFrame(rows)


def costs_of(table: Table) -> Iterator[Figures]:
    """Yield how many small models methods see, and what they cost in trainings of the target."""
    for kind in table.choices:
        rows = table.small(kind, table.seeds[0]).frame
        yield {
            "table": table.name, "small": kind, "cost": cost_of(rows) / table.unit,
            "losses": len(rows[rows["weight"].gt(0)]), "sizes": int(rows["size"].nunique()),
            "lengths": int(rows["step"].nunique()), "size": table.size, "tokens": table.tokens,
            "targets": int(table.judges.drop_duplicates(["mixture", "seed"]).shape[0]),
        }  # fmt: skip
