"""The trained models as a practitioner sees them: the target, the small ones, and those of a grid."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from mnmt_laws import observe
from mnmt_laws.arrays import Array
from studies.analysis.decisions.advice import Problem

SMALL = 1 / 3
"""Greatest cost of a small run, in trainings of the target."""

STEP, LEAST = 0.01, 0.05
"""Between the weights that may be chosen, and the least of them: the least that was trained."""


@dataclass(frozen=True, kw_only=True)
class Market:
    """The rows of all trained models."""

    rows: pd.DataFrame
    problem: Problem

    @property
    def target(self) -> pd.DataFrame:
        """Rows of the target's size and length."""
        return self._of_size(self.problem.size)

    @property
    def unit(self) -> float:
        """FLOPs of training the target once."""
        return float(self.target["flops"].median())

    @property
    def small(self) -> pd.DataFrame:
        """Rows of the sizes of which a training costs at most `SMALL` targets."""
        return self.rows[self.rows["size"].isin(self.small_costs.index)]

    @property
    def small_costs(self) -> pd.Series:
        """FLOPs of a training to the target's length, by size."""
        costs = self.rows[self.rows["tokens"].eq(self.problem.tokens)].groupby("size")["flops"].median()
        return costs[costs <= SMALL * self.unit]

    def grid(self, size: float, rng: np.random.Generator, *, most: int | None = None) -> pd.DataFrame:
        """Return the rows of a model for each mixture of all tasks, or for `most` of them, seeds drawn."""
        rows = self._of_size(size)
        rows = rows[rows.groupby("mixture")["weight"].transform("min").gt(0)]
        first = rows[rows["task"].eq(self.problem.tasks[0])]
        weights = first.groupby("mixture")["weight"].first().sort_values()
        names = weights.index if most is None else weights.index[_spread(weights.to_numpy(float), most)]
        parts = [rows[rows["mixture"].eq(name)] for name in names]
        return pd.concat([part[part["seed"].eq(rng.choice(part["seed"].unique()))] for part in parts])

    def _of_size(self, size: float) -> pd.DataFrame:
        return self.rows[self.rows["size"].eq(size) & self.rows["tokens"].eq(self.problem.tokens)]


def read_market(table: Path) -> Market:
    """Return the models of a table of two tasks, the target being the largest size at its longest length."""
    rows = observe(table).frame
    largest = rows[rows["size"].eq(rows["size"].max())]
    first = np.round(np.arange(LEAST, 1 - LEAST + STEP / 2, STEP), 6)
    problem = Problem(
        tasks=tuple(sorted(rows["task"].unique())),
        size=float(largest["size"].iloc[0]),
        tokens=float(largest["tokens"].max()),
        mixtures=np.stack([first, 1 - first], axis=1),
    )
    return Market(rows=rows, problem=problem)


def _spread(weights: Array, count: int) -> list[int]:
    """Return where the weights nearest to 1/(k + 1), 2/(k + 1), … lie."""
    ideal = np.arange(1, count + 1) / (count + 1)
    return sorted({int(np.abs(weights - weight).argmin()) for weight in ideal})
