"""The effective share f(p): of the joint law, by size without a law, free at each weight beside eq. 12."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures
from mnmt_laws import effective_fractions, fitted_fraction, fractions_by_size
from mnmt_laws.fitting.uncertainty import bounds_of
from studies.analysis.intervals import half_of_a_run
from studies.analysis.rates import CELL
from studies.analysis.splitting.tables import KNOWN, fit_reducible, rms


def fractions(rows: pd.DataFrame, *, refits: int) -> Iterator[Figures]:
    """Yield f(p) (eq. 10) of the joint law of each length with its 95% interval, and f̂(p) of eq. 12 there."""
    for step, of_length in rows.groupby("step"):
        capacity = fit_reducible(of_length, "capacity")
        f = effective_fractions(fit_reducible(of_length, "joint", refits=refits)).fractions
        for (task, weight), value in f.value.to_series().dropna().drop(1.0, level="weight").items():
            low, high = f.interval.sel(task=task, weight=weight).to_numpy()
            hat = fitted_fraction(capacity, task=task, weight=weight)
            yield {
                "step": step, "task": task, "weight": weight, "value": value, "lower": float(low),
                "upper": float(high), "eq. 12": float(hat),
            }  # fmt: skip


def shares_by_size(rows: pd.DataFrame) -> pd.DataFrame:
    """Return f of each size, read without a law by `fractions_by_size`, after the longest training.

    Logarithms of reducible losses are compared. Ends are those of a mixed model that is worse or better by
    half the 95% interval of a difference between two means over seeds. A bound is 0, or NaN, where it may be
    worse than the smallest alone, or better than the largest.
    """
    rows = rows[rows["step"] == rows["step"].max()]
    rows = rows.assign(value=rows["log"] - np.log(KNOWN)).drop(columns="irreducible")
    cells, is_mixed = rows.groupby(CELL)["value"], rows["weight"].lt(1)
    half = half_of_a_run(cells) * (2 / cells.size().min()) ** 0.5
    f, worse, better = (
        fractions_by_size(rows.assign(value=rows["value"] + shift * is_mixed), testset="test")
        for shift in (0, half, -half)
    )
    keys = f[["task", "size", "weight", "value"]]
    return keys.assign(lower=worse["lower"], upper=better["upper"])


def slopes_over_size(curves: pd.DataFrame) -> pd.DataFrame:
    """Return the exponent of f over N if each weight has an α: α_p / α_1 - 1, by `curve_exponents`.

    0 says that f is free of N. 95% intervals by the errors of both α.
    """
    alone = curves.loc[curves["weight"].eq(1), ["task", "step", "alpha"]]
    both = curves[curves["weight"].lt(1)].merge(alone, on=["task", "step"], suffixes=("", "_alone"))
    ratio = both["alpha"] / both["alpha_alone"]
    half = (both["upper"] - both["alpha"]) / both["alpha_alone"] * (1 + ratio**2) ** 0.5
    keys = both[["task", "weight", "step"]]
    return keys.assign(slope=ratio - 1, lower=ratio - 1 - half, upper=ratio - 1 + half)


def eq_12_or_free(rows: pd.DataFrame, *, refits: int) -> Iterator[Figures]:
    """Yield f with the length known at each weight: f̂ of eq. 12 (`share-tied`) and free (`share-free`).

    `error` is the root mean square of log reducible loss of each, their costs.
    """
    tied, free = (fit_reducible(rows, law, refits=refits) for law in ("share-tied", "share-free"))
    errors = {
        fitted.law.name: rms(np.log(fitted.predict(fitted.rows) / fitted.rows["value"]))
        for fitted in (tied, free)
    }
    for task in free.tasks:
        for weight in free.fitted_weights(task)[:-1]:
            at = {"task": task, "weight": float(weight)}
            hats = [fitted_fraction(tied, **at, draws=draws) for draws in (False, True)]
            gains = [table.gain.sel(at).to_numpy() for table in (free.parameters, free.draws)]
            yield {
                **at, "eq. 12": [float(hats[0]), *map(float, bounds_of(hats[1]))],
                "free": [float(weight * gains[0]), *map(float, bounds_of(weight * gains[1]))], **errors,
            }  # fmt: skip
