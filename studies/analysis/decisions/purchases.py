"""Small runs on sale, and what is bought by lot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pandas as pd

from mnmt_laws import observe
from mnmt_laws.arrays import Array
from studies.analysis.decisions.objectives import Problem

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


Horizons = Literal["long", "mixed"]
"""Whether every run bought goes to the target's length, or to a length drawn by lot."""

Purchase = tuple[float, Horizons]
"""A budget for small runs, in trainings of the target, and how long they are."""


def parse_purchase(text: str) -> Purchase:
    """Return a budget and its runs' lengths from `BUDGET LENGTHS`, such as `2 long`.

    Raises:
        ValueError: If it is written otherwise.
    """
    budget, _, lengths = text.partition(" ")
    for horizons in get_args(Horizons):
        if lengths == horizons:
            return float(budget), horizons
    raise ValueError(f"`purchases` must be BUDGET and long or mixed, such as `2 long`, but one is {text!r}.")


def cost_of(rows: pd.DataFrame) -> float:
    """Return the FLOPs of training some models to some lengths, the steps that lengths share counted once.

    All lengths of one model leave one trunk, each for a cool-down of its own. Where the table does not say
    when the cool-downs began, nothing is shared.

    Args:
        rows: `size`, `mixture`, `seed`, `step`, `tokens`, `flops` to that length, and `cooldown_start`.
    """
    runs = rows.drop_duplicates(["size", "mixture", "seed", "tokens"])
    trunk = (runs["cooldown_start"] / runs["step"]).fillna(0.0) * runs["flops"]
    longest = trunk.groupby([runs["size"], runs["mixture"], runs["seed"]]).max()
    return float((runs["flops"] - trunk).sum() + longest.sum())


def buy(
    offers: pd.DataFrame, *, budget: float, tokens: float, horizons: Horizons, rng: np.random.Generator
) -> pd.DataFrame:
    """Return the rows of runs bought by lot until nothing that is left fits in the budget.

    Sizes take turns from the smallest, each with its mixtures in random order; the seed of each run is drawn.
    A run brings its losses at all shorter lengths too, for their cool-downs.

    Args:
        offers: Rows of the small models.
        budget: FLOPs.
        tokens: Length of the target, beyond which no run is bought.
        horizons: The length of each run.
        rng: Where the lots come from; the same lots in the same order for any budget.
    """
    bought: list[pd.DataFrame] = []
    for size, mixture in _turns(offers, rng):
        models = offers[offers["size"].eq(size) & offers["mixture"].eq(mixture)]
        lengths = sorted(models.loc[models["tokens"].le(tokens), "tokens"].unique())
        seed, longest = rng.choice(models["seed"].unique()), _longest(lengths, horizons, rng)
        run = models[models["seed"].eq(seed) & models["tokens"].le(longest)]
        if cost_of(run) <= budget:
            bought.append(run)
            budget -= cost_of(run)
    return pd.concat(bought) if bought else offers.iloc[:0]


def _turns(offers: pd.DataFrame, rng: np.random.Generator) -> list[tuple[float, str]]:
    """Return sizes and mixtures in the order in which they are bought."""
    orders = {
        size: rng.permutation(np.sort(offers.loc[offers["size"].eq(size), "mixture"].unique()))
        for size in np.sort(offers["size"].unique())
    }
    longest = max(map(len, orders.values()))
    return [
        (size, order[turn]) for turn in range(longest) for size, order in orders.items() if turn < len(order)
    ]


def _longest(lengths: Sequence[float], horizons: Horizons, rng: np.random.Generator) -> float:
    """Return the length that a run goes to, in tokens; lots are drawn whether or not they are used."""
    lot = float(rng.choice(lengths))
    return lengths[-1] if horizons == "long" else lot
