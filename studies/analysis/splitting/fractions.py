"""The effective share f(p): of the joint law, by size without a law, free at each weight beside eq. 12."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures
from mnmt_laws import LawFit, fitted_fraction, fractions_by_size, observe
from mnmt_laws.arrays import Array
from mnmt_laws.fitting.uncertainty import bounds_of
from studies.analysis.intervals import pooled
from studies.analysis.rates import CELL
from studies.analysis.splitting.exponents import curve_exponents
from studies.analysis.splitting.tables import KNOWN, fit_reducible, rms

CURVE = np.linspace(0.02, 1.0, 50)
"""Weights of eq. 12's curve."""


def fractions(rows: pd.DataFrame, *, refits: int) -> Iterator[Figures]:
    """Yield f(p) = (β_1 / β_p)^(1/α) (eq. 10) of the joint law of each length, and f̂(p) of eq. 12 there."""
    for step, some in rows.groupby("step"):
        joint, capacity = fit_reducible(some, "joint", refits=refits), fit_reducible(some, "capacity")
        for task in joint.tasks:
            for weight in joint.fitted_weights(task)[:-1]:
                value, draws = fraction(joint, task, weight)
                low, high = bounds_of(draws)
                hat = float(fitted_fraction(capacity, task=task, weight=weight))
                yield {
                    "step": step, "task": task, "weight": float(weight), "value": value,
                    "lower": float(low), "upper": float(high), "eq. 12": hat,
                }  # fmt: skip


def fraction(joint: LawFit, task: str, weight: float) -> tuple[float, Array]:
    """Return f at a weight of the joint law, and that of every refit."""
    values = []
    for table in (joint.parameters, joint.draws):
        one = table.sel(task=task)
        ratio = one.beta.sel(weight=1.0) / one.beta.sel(weight=weight)
        values.append(np.asarray((ratio ** (1 / one.alpha)).to_numpy()))
    return float(values[0]), values[1]


def curves_of_eq_12(rows: pd.DataFrame) -> pd.DataFrame:
    """Return f̂(p) of the capacity law at each length, as rows to draw."""
    parts = []
    for step, some in rows.groupby("step"):
        fitted = fit_reducible(some, "capacity")
        for task in fitted.tasks:
            value = fitted_fraction(fitted, task=task, weight=CURVE)
            parts.append(pd.DataFrame({"step": step, "task": task, "weight": CURVE, "value": value}))
    return pd.concat(parts)


def shares_by_size(rows: pd.DataFrame, *, draws: int) -> pd.DataFrame:
    """Return f of each size, read without a law by `fractions_by_size`, after the longest training.

    Logarithms of reducible losses are compared. 95% intervals are of other seeds: means drawn about those
    measured, from Student's t with the variance over seeds pooled over the cells. A bound is 0, or NaN, where
    the model may be worse than the smallest alone, or better than the largest.
    """
    rows = rows[rows["step"] == rows["step"].max()]
    rows = rows.assign(value=np.log(rows["reducible"] / KNOWN)).drop(columns="irreducible")
    measured = observe(rows, testset="test")
    logs, rng = measured.frame["value"], np.random.default_rng(0)
    cells = measured.frame.groupby(CELL)["value"]
    variance, freedom = pooled(cells)
    others = []
    for _ in range(draws):
        std = (variance * freedom / rng.chisquare(freedom) / cells.transform("count")) ** 0.5
        shifts = rng.standard_normal(cells.ngroups)[cells.ngroup()]
        frame = measured.frame.assign(value=logs + std * shifts)
        others.append(fractions_by_size(replace(measured, frame=frame)))
    low, high = (np.quantile([each[end] for each in others], level, axis=0, method="nearest")
                 for end, level in (("lower", 0.025), ("upper", 0.975)))  # fmt: skip
    return fractions_by_size(measured)[["task", "size", "weight", "value"]].assign(lower=low, upper=high)


def slopes_over_size(rows: pd.DataFrame) -> pd.DataFrame:
    """Return α_p / α_1 - 1, the exponent of f over N if each weight has a power law of its own.

    0 says that f is free of N. 95% intervals by the errors of both α.
    """
    curves = pd.DataFrame(curve_exponents(rows)).set_index(["task", "weight", "step"])
    curves, alone = curves.drop(1.0, level="weight"), curves.xs(1.0, level="weight")["alpha"]
    alone = alone.reindex(curves.index.droplevel("weight")).set_axis(curves.index)
    ratio = curves["alpha"] / alone
    half = (curves["upper"] - curves["alpha"]) / alone * (1 + ratio**2) ** 0.5
    table = {"slope": ratio - 1, "lower": ratio - 1 - half, "upper": ratio - 1 + half}
    return pd.DataFrame(table).reset_index()


def eq_12_or_free(rows: pd.DataFrame, *, refits: int) -> Iterator[Figures]:
    """Yield f with the length known at each weight: f̂ of eq. 12 (`share-tied`) and free (`share-free`).

    `error` is the root mean square of log reducible loss of each, their costs.
    """
    fits = {law: fit_reducible(rows, law, refits=refits) for law in ("share-tied", "share-free")}
    observed = np.log(rows["reducible"].to_numpy())
    errors = {
        law: rms(np.log(fitted.predict(rows.reset_index(drop=True))) - observed)
        for law, fitted in fits.items()
    }
    for task in fits["share-free"].tasks:
        gains = [
            table.gain.sel(task=task) for table in (fits["share-free"].parameters, fits["share-free"].draws)
        ]
        for weight in fits["share-free"].fitted_weights(task)[:-1]:
            value, draws = (weight * gain.sel(weight=weight).to_numpy() for gain in gains)
            hat, hats = (
                fitted_fraction(fits["share-tied"], task=task, weight=weight, draws=each)
                for each in (False, True)
            )
            yield {
                "task": task, "weight": float(weight), "eq. 12": [float(hat), *map(float, bounds_of(hats))],
                "free": [float(value), *map(float, bounds_of(draws))], **errors,
            }  # fmt: skip
