"""The effective share f(p): of the joint law, by size without a law, free at each weight beside eq. 12."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures
from mnmt_laws import LawFit, fitted_fraction
from mnmt_laws.arrays import Array
from mnmt_laws.fitting.uncertainty import bounds_of
from studies.analysis.splitting.tables import fit_reducible, log_means, rms, seeds_drawn_again

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
    """Return f of each size, read without a law, after the longest training.

    N_eff is the size at which the task alone has the loss of the mixed model, log loss linear in log N
    between two sizes; f is NaN where the model is worse than the smallest alone or better than the
    largest. 95% intervals over seeds.
    """
    rows, rng = rows[rows["step"] == rows["step"].max()], np.random.default_rng(0)
    others = pd.DataFrame([read_shares(seeds_drawn_again(rows, rng)) for _ in range(draws)])
    low, high = (others.quantile(end) for end in (0.025, 0.975))
    return pd.DataFrame({"value": read_shares(rows), "lower": low, "upper": high}).reset_index()


def read_shares(rows: pd.DataFrame) -> pd.Series:
    """Return f by task, size, weight and step."""
    means = log_means(rows)
    parts = []
    for _, some in means.groupby("task"):
        alone = some.xs(1.0, level="weight").sort_index().cummin()
        sizes = np.log(alone.index.get_level_values("size").to_numpy(float))
        mixed = some[some.index.get_level_values("weight") < 1]
        effective = np.interp(-mixed.to_numpy(), -alone.to_numpy(), sizes, left=np.nan, right=np.nan)
        share = np.exp(effective - np.log(mixed.index.get_level_values("size").to_numpy(float)))
        parts.append(pd.Series(share, index=mixed.index))
    return pd.concat(parts)


def slopes_over_size(rows: pd.DataFrame, *, draws: int) -> pd.DataFrame:
    """Return α_p / α_1 - 1, the exponent of f over N if each weight has a power law of its own.

    0 says that f is free of N. 95% intervals over seeds.
    """
    rng = np.random.default_rng(0)
    others = pd.DataFrame([_slopes(seeds_drawn_again(rows, rng)) for _ in range(draws)])
    low, high = (others.quantile(end) for end in (0.025, 0.975))
    return pd.DataFrame({"slope": _slopes(rows), "lower": low, "upper": high}).reset_index()


def _slopes(rows: pd.DataFrame) -> pd.Series:
    table = log_means(rows).unstack("size")
    x = np.log(table.columns.to_numpy(float))
    alphas = pd.Series(-np.polyfit(x, table.to_numpy().T, 1)[0], index=table.index)
    alone = alphas.xs(1.0, level="weight")
    relative: pd.Series = (alphas / alone.reindex(alphas.index.droplevel("weight")).to_numpy() - 1).drop(
        1.0, level="weight"
    )
    return relative


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
