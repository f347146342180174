"""The effective fraction f(p) by table, length, sizes, task and weight."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from mnmt_laws import LawFit, TableError
from mnmt_laws.arrays import Array
from mnmt_laws.fitting.uncertainty import bounds_of
from studies.analysis.splitting.tables import SHARED, fit_reducible, read, tables

COMMON_SIZES = (2_488, 9_456, 37_216)
"""The sizes that every table of shared features has, in parameters."""


def fractions(*, refits: int) -> pd.DataFrame:
    """Return f(p) = (β_1 / β_p)^(1/α) (eq. 10) of the joint law, L∞ known, for each part of each table.

    Columns `table`, `testset`, `sizes`, `step`, `task`, `alpha`, `weight`, `value`, `lower` and `upper`.
    """
    rows: list[dict[str, object]] = []
    for (name, testset, sizes), part in parts():
        for step, some in part.groupby("step"):
            key = {"table": name, "testset": testset, "sizes": sizes, "step": step}
            rows += [key | each for each in fractions_of(some, refits=refits)]
    return pd.DataFrame(rows)


def parts() -> Iterator[tuple[tuple[str, str, str], pd.DataFrame]]:
    """Yield the whole of every table, and of `unrelated` its dev set, its small and its large sizes."""
    for name, rows in tables().items():
        yield (name, "test", "all"), rows
    rows = read("unrelated")
    yield ("unrelated", "dev", "all"), read("unrelated", "dev")
    for label, sizes in size_groups(rows).items():
        briefer = rows[rows["step"] < rows["step"].max()]
        yield ("unrelated", "test", label), briefer[briefer["size"].isin(sizes)]
    yield ("unrelated", "test", "common"), rows[rows["size"].isin(COMMON_SIZES)]


def size_groups(rows: pd.DataFrame) -> dict[str, list[int]]:
    """Return the three smallest and the three largest sizes."""
    sizes = sorted(rows["size"].unique())
    return {"small": sizes[:3], "large": sizes[-3:]}


def fractions_of(rows: pd.DataFrame, *, refits: int) -> Iterator[dict[str, object]]:
    """Yield f at every weight of the tasks that were also trained alone; nothing of too few sizes."""
    try:
        fitted = fit_reducible(rows, "joint", refits=refits)
    except TableError:
        return
    for task in fitted.tasks:
        for weight in fitted.fitted_weights(task):
            value, draws = fraction(fitted, task, weight)
            low, high = bounds_of(draws)
            if weight < 1 and np.isfinite(value):
                yield {
                    "task": task, "alpha": float(fitted.parameters.alpha.sel(task=task)), "weight": weight,
                    "value": value, "lower": float(low), "upper": float(high),
                }  # fmt: skip


def fraction(fitted: LawFit, task: str, weight: float) -> tuple[float, Array]:
    """Return f at a weight, and that of every refit; NaN for a task that was not trained alone."""
    values = []
    for table in (fitted.parameters, fitted.draws):
        one = table.sel(task=task)
        alone = one.beta.sel(weight=1.0) if 1.0 in one.weight else one.beta.isel(weight=0) * np.nan
        ratio = alone / one.beta.sel(weight=weight)
        values.append(np.asarray((ratio ** (1 / one.alpha)).to_numpy()))
    return float(values[0]), values[1]


def sharing(*, refits: int) -> list[dict[str, object]]:
    """Return how many times as large f is with shared features, with a 95% interval over seeds.

    Of the first task, at the sizes that all tables have.
    """
    unrelated = read("unrelated")
    base = unrelated[unrelated["size"].isin(COMMON_SIZES)]
    return [
        {"table": name} | row
        for name in tables()
        if SHARED.get(name)
        for row in ratios(read(name), base, task="xx-aa", refits=refits)
    ]


def ratios(rows: pd.DataFrame, base: pd.DataFrame, *, task: str, refits: int) -> Iterator[dict[str, object]]:
    """Yield the ratio of f in one table to that in another, at each length and weight below 1 of both.

    The tables' seeds are independent, so their draws are paired by lot.
    """
    for step, some in rows.groupby("step"):
        fits = [fit_reducible(part, "joint", refits=refits) for part in (some, base[base["step"] == step])]
        for weight in sorted(set.intersection(*(set(each.fitted_weights(task)) for each in fits)) - {1.0}):
            (value, draws), (other, others) = (fraction(each, task, weight) for each in fits)
            low, high = bounds_of(draws / others)
            yield {
                "step": step, "task": task, "weight": weight, "f": value, "f of the other": other,
                "ratio": value / other, "lower": float(low), "upper": float(high),
            }  # fmt: skip
