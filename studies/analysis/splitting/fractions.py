"""Effective fractions at one length, of laws that know the length, and of single seeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from mnmt_laws import LawFit, TableError, fitted_fraction
from mnmt_laws.arrays import Array
from mnmt_laws.fitting.uncertainty import bounds_of
from mnmt_laws.laws import LawName
from studies.analysis.splitting.tables import (
    RESIDUALS,
    SHARED,
    fit_losses,
    fit_reducible,
    read,
    relative_errors,
    rms,
    saturated,
    tables,
)

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


LENGTH_LAWS: tuple[LawName, ...] = ("share-tied", "share-coupled", "length", "length-full")
USUAL: LawName = "share-tied"


def length_laws(
    rows: pd.DataFrame, *, laws: Sequence[LawName] = LENGTH_LAWS, refits: int
) -> Iterator[dict[str, object]]:
    """Yield each law's errors, f, α and L∞ on all rows and on the saturated, L∞ known and not."""
    some = saturated(rows)
    parts = {"saturated": some} if len(some) == len(rows) else {"all": rows, "saturated": some}
    for label, part in parts.items():
        for known in (True, False):
            for law in laws:
                yield {"rows": label, "L∞": "known" if known else "fitted", "law": law} | of_law(
                    part, law, known=known, refits=refits if law == USUAL else 0
                )


def of_law(rows: pd.DataFrame, law: LawName, *, known: bool, refits: int) -> dict[str, object]:
    """Return a law's error on the rows, on the longest training left out, and its parameters by task."""
    method = fit_reducible if known else fit_losses
    fitted = method(rows, law, refits=refits)
    is_last = rows["step"].eq(rows["step"].max())
    briefer = method(rows[~is_last], law) if rows["step"].nunique() > 2 else None
    return {
        "error": rms(errors_of(fitted, rows, known=known)),
        "longest left out": rms(errors_of(briefer, rows[is_last], known=known)) if briefer else None,
        "tasks": {task: parameters_of(fitted, rows, task) for task in fitted.tasks},
    }


def errors_of(fitted: LawFit, rows: pd.DataFrame, *, known: bool) -> np.ndarray:
    """Return a fit's errors as shares of the reducible loss."""
    some = rows.reset_index(drop=True)
    floor = some["irreducible"].to_numpy() if known else 0.0
    return relative_errors(fitted.predict(some) + floor, some)


def parameters_of(fitted: LawFit, rows: pd.DataFrame, task: str) -> dict[str, object]:
    """Return α, L∞ and f̂ at the fitted weights with their intervals; the true L∞ too."""
    of_task = rows[rows["task"] == task]
    weights = np.array(sorted(set(of_task["weight"]) - {1.0}))
    shares = fitted_fraction(fitted, task=task, weight=weights)
    low, high = bounds_of(fitted_fraction(fitted, task=task, weight=weights, draws=True))
    columns = zip(weights.tolist(), shares.tolist(), low.tolist(), high.tolist(), strict=True)
    return {
        "alpha": with_interval(fitted, "alpha", task), "l_inf": with_interval(fitted, "l_inf", task),
        "true l_inf": float(of_task["irreducible"].iloc[0]), "f": [list(column) for column in columns],
    }  # fmt: skip


def with_interval(fitted: LawFit, name: str, task: str) -> list[float]:
    """Return a parameter and the ends of its 95% interval."""
    ends = bounds_of(fitted.draws[name].sel(task=task).to_numpy())
    return [float(fitted.parameters[name].sel(task=task)), *map(float, ends)]


GROUPS = {"p ≤ .1": (0.0, 0.1), "p .3 to .7": (0.3, 0.7), "p ≥ .9": (0.9, 1.0)}
CELL = ["task", "size", "weight", "step"]


def spreads(rows: pd.DataFrame) -> Iterator[dict[str, object]]:
    """Yield the standard deviation of log reducible loss over seeds, pooled over cells, in each part.

    The test set is exact, so it is all of training: initial weights and the order of the data.
    """
    for step, some in rows.groupby("step"):
        for label, (low, high) in GROUPS.items():
            cells = np.log(some[some["weight"].between(low, high)]["reducible"]).groupby(
                [some[name] for name in CELL]
            )
            each = cells.std()
            yield {
                "step": step, "weights": label, "cells": len(each), "spread": pooled_spread(some, low, high),
                "lowest": float(each.min()), "highest": float(each.max()),
            }  # fmt: skip


def pooled_spread(rows: pd.DataFrame, low: float = 0.0, high: float = 1.0) -> float:
    """Return the root mean square, over cells, of the standard deviation of log reducible loss."""
    some = rows[rows["weight"].between(low, high)]
    variances = np.log(some["reducible"]).groupby([some[name] for name in CELL]).var()
    return float(np.sqrt(variances.mean()))


def fractions_by_seed(rows: pd.DataFrame, *, refits: int, weight: float = 0.5) -> Iterator[dict[str, object]]:
    """Yield f at a weight from each seed alone, beside the interval from all.

    The interval of one seed is from its residuals (the bootstrap that `fit` takes by default), that of all
    is over runs.
    """
    for step, some in rows.groupby("step"):
        together = fit_reducible(some, "joint", refits=refits)
        alone = [
            fit_reducible(part, "joint", refits=refits, over=RESIDUALS) for _, part in some.groupby("seed")
        ]
        for task in together.tasks:
            value, draws = fraction(together, task, weight)
            seeds = [fraction(each, task, weight) for each in alone]
            yield {
                "step": step, "task": task, "weight": weight, "value": value,
                "interval": ends(draws), "by seed": [one for one, _ in seeds],
                "intervals by seed": [ends(each) for _, each in seeds],
            }  # fmt: skip


def ends(draws: np.ndarray) -> list[float]:
    """Return the ends of the 95% interval."""
    return [float(end) for end in bounds_of(draws)]
