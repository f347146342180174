"""Choices judged by the losses of the target, which was trained at several weights with several seeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures
from mnmt_laws.arrays import Array
from studies.analysis.decisions.advice import smallest
from studies.analysis.decisions.tables import ALL, CHEAP, Table, cost_of
from studies.analysis.decisions.trials import OWN, trials_of
from studies.analysis.decisions.wants import WEIGHTS, Wish, curves

DRAWS = 300
LEVEL = 0.95
WON = "can be won"
"""Whether the best weight gains more on the free rule than a run scatters."""
Choice = tuple[str, str]
LEADS = (
    ((CHEAP, "the tool"), (OWN, "2 runs")), ((CHEAP, "the tool"), (CHEAP, "lines")),
    ((ALL, "the tool"), (OWN, "5 runs")), ((ALL, "the tool"), (ALL, "lines")),
)  # fmt: skip
"""Choices that cost alike, or from the same models, by their small models and method."""
EQUAL = {"small": "none", "method": "equal weights", "weight": 0.5}


class Truth:
    """A target's losses at all mixtures, by the means over seeds and by means that other seeds might give."""

    def __init__(self, rows: pd.DataFrame, rng: np.random.Generator, *, without: float | None = None) -> None:
        """Take the rows of the target; the means are without those of one seed."""
        logs = np.log(rows["value"]).groupby([rows["task"], rows["weight"]])
        freedom = (logs.size() - 1).groupby("task").sum()
        spread = (logs.var() * (logs.size() - 1)).groupby("task").sum() / freedom
        self.scatter: Array = np.sqrt(spread.to_numpy(float))
        """(tasks,) the standard deviation of a run's log loss, pooled over weights."""
        others = rows[rows["seed"].ne(without)]
        logs = np.log(others["value"]).groupby([others["task"], others["weight"]])
        self.means, counts = logs.mean(), logs.size()
        errors = self.scatter[self.means.index.codes[0]] / np.sqrt(counts.to_numpy(float))
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


def decisions_of(table: Table, advice: pd.DataFrame, rng: np.random.Generator) -> Iterator[Figures]:
    """Yield each choice with the stake, a run's scatter, its regret, and its gains on the free rule by draw.

    Choices by runs of the target are judged by its other seeds: their regret is over the least cost of those.
    """
    truth = Truth(table.judges, rng)
    others = {seed: Truth(table.judges, rng, without=seed) for seed in table.judges["seed"].unique()}
    advice = pd.concat([advice, pd.DataFrame(trials_of(table))])
    for wish in table.wishes:
        costs = truth.costs(wish)[0]
        scatter, stake = truth.run_scatter(wish), float(np.interp(wish.free, WEIGHTS, costs) - costs.min())
        key = {
            "table": table.name, "want": wish.name, "aim": wish.aim, "stake": stake, "scatter": scatter,
            WON: stake > scatter, "best": float(WEIGHTS[costs.argmin()]),
        }  # fmt: skip
        for row in (EQUAL, *advice[advice["want"].eq(wish.name)].to_dict("records")):
            judge = others[row["seed"]] if row["small"] == OWN else truth
            costs = judge.costs(wish)
            gains = _gains(costs, wish.free, row["weight"])
            regret = float(np.interp(row["weight"], WEIGHTS, costs[0]) - costs[0].min())
            yield row | key | {"regret": regret, "gains": gains}


def _gains(costs: Array, free: float, weight: float) -> Array:
    """Return (draws,) what costs are less at one weight than at another, linear between those of the grid."""
    return np.array([np.subtract(*np.interp([free, weight], WEIGHTS, row)) for row in costs])


def summarise(decisions: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Return a row for each group and method.

    Columns: `decisions` and `choices`, means over decisions of `stake`, `scatter`, `regret` and `stated`, and
    the `gain` on the free rule with its interval over other seeds of the target.
    """
    rows = []
    for key, part in decisions.groupby([*by, "method"], sort=False):
        alike = part.groupby(["table", "want"])
        rows.append(
            dict(zip([*by, "method"], key, strict=True))
            | {"decisions": alike.ngroups, "choices": len(part)}
            | alike[["stake", "scatter", "regret", "stated"]].mean().mean().to_dict()
            | _with_interval("gain", _mean_gains(part))
        )
    return pd.DataFrame(rows)


def lead_of(decisions: pd.DataFrame, pairs: Sequence[tuple[Choice, Choice]] = LEADS) -> pd.DataFrame:
    """Return how much more the first of each pair gains than the second in the same decisions.

    Args:
        decisions: As `decisions_of` yields them.
        pairs: Each choice by its `small` models and `method`.

    Columns: `first`, `second`, and `lead` with its interval over other seeds of the target.
    """
    choices = decisions.groupby(["small", "method"])
    return pd.DataFrame(
        {"first": ", ".join(first), "second": ", ".join(second)}
        | _with_interval(
            "lead", _mean_gains(choices.get_group(first)) - _mean_gains(choices.get_group(second))
        )
        for first, second in pairs
    )


def _mean_gains(decisions: pd.DataFrame) -> Array:
    """Return (1 + draws,) means over decisions of means over choices; the first is the measured one."""
    alike = decisions.groupby(["table", "want"])["gains"]
    return np.mean([np.mean(same.to_list(), axis=0) for _, same in alike], axis=0)


def _with_interval(name: str, draws: Array) -> dict[str, float]:
    lower, upper = np.quantile(draws[1:], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return {name: float(draws[0]), "lower": float(lower), "upper": float(upper)}


def costs_of(table: Table) -> Iterator[Figures]:
    """Yield how many small models methods see; what all and the smallest cost, in trainings of the target."""
    for kind in table.choices:
        rows = table.small(kind, table.seeds[0]).frame
        yield {
            "table": table.name, "small": kind, "cost": cost_of(rows) / table.unit,
            "smallest": cost_of(smallest(rows)) / table.unit,
            "models": len(rows.drop_duplicates(["size", "mixture"])), "sizes": sorted(set(rows["size"])),
            "lengths": int(rows["step"].nunique()), "size": table.size, "tokens": table.tokens,
            "targets": int(table.judges.drop_duplicates(["mixture", "seed"]).shape[0]),
        }  # fmt: skip
