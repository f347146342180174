"""The trade-off between tasks as their weights change (Fernandes et al. 2023, sec. 3.4)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from mnmt_laws.answers.arguments import check_level, check_predictors
from mnmt_laws.answers.mixtures.best_mixture import sign_of
from mnmt_laws.answers.mixtures.simplex import efficient, simplex_points
from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError, TableError
from mnmt_laws.fitting.law_fit import LawFit, require_mixtures
from mnmt_laws.fitting.uncertainty import bounds_of
from mnmt_laws.tables.observations import Observations

_NUM_WEIGHTS = 97


def frontier(
    fit: LawFit,
    *,
    size: float | None = None,
    tokens: float | None = None,
    weights: ArrayLike | None = None,
    level: float = 0.95,
) -> xr.Dataset:
    """Predict every task's metric over the mixtures, at one size and training length.

    Args:
        fit: A fit of a law that predicts any mixture, to two sources or more.
        size: N, parameters.
        tokens: D, target tokens of all tasks, for a law that knows the training length.
        weights: Mixtures (points, sources), or for two sources the weights of the first; by default evenly
            spread, for two tasks over the weights observed.
        level: Level of the intervals.

    Returns:
        `value`, `lower` and `upper` (central interval over the refits, NaN without) over (task, point);
        `weight` over (source, point), and over task where the tasks are the sources; `efficient` over point,
        whether no other point is better on every task.

    Raises:
        TableError: If the mixtures have one source.
        TypeError: If `fit` is not a fit, or a number has another type.
        ArgumentError: If the law does not predict every weight, or an argument is missing, superfluous or out
            of range.
    """
    require_mixtures(fit)
    predictors = check_predictors(fit, size=size, tokens=tokens)
    level = check_level(level)
    points = _mixtures(fit, weights)
    value = fit.evaluator.predict_points(fit.parameters, points=points[None], **predictors)[0]
    draws = fit.evaluator.predict_points(fit.draws, points=points[None], **predictors)
    low, high = bounds_of(draws, level)
    dims, sources = ("task", "point"), "task" if fit.sources == fit.tasks else "source"
    return xr.Dataset(
        {
            "value": (dims, value),
            "lower": (dims, low),
            "upper": (dims, high),
            "weight": ((sources, "point"), points.T),
            "efficient": ("point", efficient(sign_of(fit) * value)),
        },
        coords={"task": fit.tasks} | ({} if sources == "task" else {"source": fit.sources}),
        attrs={
            **predictors,
            "units": fit.observations.unit,
            "long_name": fit.observations.metric,
            "level": level,
        },
    )


def _mixtures(fit: LawFit, weights: ArrayLike | None) -> Array:
    """Return (points, sources) the requested mixtures, or the default ones."""
    count = len(fit.sources)
    if count < 2:
        raise TableError(
            f"{fit.observations.source}: a frontier needs two tasks or more, but the table has "
            f"{fit.sources[0]} only."
        )
    if weights is None and fit.sources != fit.observations.tasks[:2]:
        return simplex_points(count)
    points = np.asarray(
        np.linspace(*observed_range(fit.observations), _NUM_WEIGHTS) if weights is None else weights, float
    )
    mixtures = np.stack([points, 1.0 - points], axis=1) if points.ndim == 1 and count == 2 else points
    if (
        mixtures.ndim != 2
        or mixtures.shape[1] != count
        or not np.abs(mixtures.sum(axis=1) - 1).max(initial=0.0) <= 1e-6
        or mixtures.min(initial=0.0) < 0
    ):
        raise ArgumentError(
            f"`weights` must hold mixtures of {count} tasks that sum to 1, in the order "
            f"{', '.join(fit.sources)}."
        )
    return mixtures


def observed_range(observations: Observations) -> tuple[float, float]:
    """Return the least and the greatest share of the first task among mixtures of both tasks."""
    first, second = observations.tasks[:2]
    rows = observations.frame[observations.frame["weight"].between(0, 1, inclusive="neither")]
    shares = rows["weight"].where(rows["task"] == first, 1 - rows["weight"])
    if rows.empty:
        raise TableError(f"{observations.source}: no run mixes {first} and {second}; a frontier needs some.")
    return float(shares.min()), float(shares.max())


def observed_pairs(observations: Observations) -> pd.DataFrame:
    """Return both tasks' values of every model trained on the two, averaged over seeds.

    Returns:
        Columns `size`, `weight` (of the first task), `role` and one column for each task.
    """
    first, second = observations.tasks[:2]
    rows = observations.frame
    mixed = rows[rows["weight"].between(0, 1, inclusive="neither")]
    mixed = mixed.assign(share=mixed["weight"].where(mixed["task"] == first, 1 - mixed["weight"]).round(6))
    pairs = mixed.pivot_table(index=["size", "share", "role"], columns="task", values="value", aggfunc="mean")
    return pairs.dropna(subset=[first, second]).reset_index().rename(columns={"share": "weight"})
