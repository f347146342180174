"""The trade-off between tasks as their weights change (Fernandes et al. 2023, sec. 3.4)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from mnmt_laws.answers.simplex import efficient, simplex_points
from mnmt_laws.arrays import Array
from mnmt_laws.errors import TableError
from mnmt_laws.fitting.law_fit import LawFit, require_mixtures
from mnmt_laws.fitting.uncertainty import bounds_of
from mnmt_laws.tables.observations import Observations

_NUM_WEIGHTS = 97


def frontier(
    fit: LawFit, *, size: float, weights: ArrayLike | None = None, level: float = 0.95
) -> xr.Dataset:
    """Predict every task's metric over the mixtures, at one size.

    Args:
        fit: A fit of a capacity law to two tasks or more.
        size: N, parameters.
        weights: Mixtures (points, tasks), or for two tasks the weights of the first; by default evenly
            spread, for two tasks over the weights observed.
        level: Level of the intervals.

    Returns:
        `value`, `lower` and `upper` (central interval over the refits, NaN without) and `weight` over (task,
        point); `efficient` over point, whether no other point is better on every task.

    Raises:
        TableError: If the fit holds one task.
        TypeError: If `fit` is not a fit.
        ValueError: If the law does not predict every weight, or an argument is out of range.
    """
    mixtures = _mixtures(fit, size, weights)
    named = dict(zip(fit.tasks, mixtures.T, strict=True))
    value = fit.predict_mixture(size=size, mixture=named)
    low, high = bounds_of(fit.predict_mixture(size=size, mixture=named, draws=True).to_numpy(), level)
    sign = -1 if fit.observations.rising else 1
    dims = ("task", "point")
    return xr.Dataset(
        {
            "value": value,
            "lower": (dims, low),
            "upper": (dims, high),
            "weight": (dims, mixtures.T),
            "efficient": ("point", efficient(sign * value.to_numpy())),
        },
        attrs={
            "size": float(size),
            "units": fit.observations.unit,
            "long_name": fit.observations.metric,
            "level": level,
        },
    )


def _mixtures(fit: LawFit, size: float, weights: ArrayLike | None) -> Array:
    """Return (points, tasks) the mixtures that were requested, or the default ones."""
    require_mixtures(fit)
    if len(fit.tasks) < 2:
        raise TableError(
            f"{fit.observations.source}: a frontier needs two tasks or more, but the table has "
            f"{fit.tasks[0]} only."
        )
    if size <= 0:
        raise ValueError(f"`size` must be above 0 parameters, but is {size:g}.")
    if weights is None and len(fit.tasks) > 2:
        return simplex_points(len(fit.tasks))
    points = np.asarray(
        np.linspace(*observed_range(fit.observations), _NUM_WEIGHTS) if weights is None else weights, float
    )
    mixtures = np.stack([points, 1.0 - points], axis=1) if points.ndim == 1 else points
    if (
        mixtures.ndim != 2
        or mixtures.shape[1] != len(fit.tasks)
        or np.abs(mixtures.sum(axis=1) - 1).max() > 1e-6
    ):
        raise ValueError(f"`weights` must hold mixtures of {len(fit.tasks)} tasks that sum to 1.")
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


def extrapolation(fit: LawFit, mixture: Mapping[str, float], size: float) -> tuple[str, ...]:
    """Return a line for each way in which a prediction leaves what was observed."""
    rows, warnings = fit.observations.fit, []
    for task in fit.tasks:
        weights = rows.loc[rows["task"] == task, "weight"]
        low, high = float(weights.min()), float(weights.max())
        if not low - 1e-9 <= mixture[task] <= high + 1e-9:
            warnings.append(
                f"the weight {mixture[task]:.3g} of {task} lies outside those observed ({low:g} to {high:g})."
            )
    smallest, largest = float(rows["size"].min()), float(rows["size"].max())
    if size > largest:
        warnings.append(
            f"the size is {size / largest:.1f} times the largest observed; the law is extrapolated."
        )
    if size < smallest:
        warnings.append(f"the size is below the smallest observed ({smallest:g}); the law is extrapolated.")
    return tuple(warnings)
