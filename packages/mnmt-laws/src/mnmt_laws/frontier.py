"""The trade-off between two tasks as their weights change (Fernandes et al. 2023, sec. 3.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar

from mnmt_laws.errors import TableError
from mnmt_laws.observations import Observations
from mnmt_laws.results import LawFit

_TOLERANCE = 1e-6
_NUM_WEIGHTS = 97


def frontier(capacity: LawFit, *, size: float, weights: ArrayLike | None = None) -> xr.DataArray:
    """Predicted metric of both tasks over the first task's weight, at one size.

    Args:
        capacity: A fit of the capacity law to two tasks.
        size: N, parameters.
        weights: Weights of the first task, in (0, 1); by default evenly spaced over the weights observed.

    Returns:
        Values over (task, weight), where `weight` is the first task's share.

    Raises:
        TableError: If the fit does not hold two tasks.
        ValueError: If `size` is not positive.
    """
    first, second = two_tasks(capacity)
    if size <= 0:
        raise ValueError(f"`size` must be above 0 parameters, but is {size:g}.")
    shares = (
        np.linspace(*observed_range(capacity.observations), _NUM_WEIGHTS)
        if weights is None
        else np.asarray(weights)
    )
    values = [
        capacity.predict(size=size, task=first, weight=shares),
        capacity.predict(size=size, task=second, weight=1 - shares),
    ]
    return xr.DataArray(
        np.stack(values),
        coords={"task": [first, second], "weight": shares},
        dims=("task", "weight"),
        attrs={"size": size, "units": capacity.observations.unit, "long_name": capacity.observations.metric},
    )


def two_tasks(fit: LawFit) -> tuple[str, str]:
    """The fit's two tasks.

    Raises:
        TableError: If it has another number of them.
    """
    if len(fit.tasks) != 2:
        raise TableError(
            f"{fit.observations.source}: a frontier needs two tasks, but the table has {len(fit.tasks)} "
            f"({', '.join(fit.tasks)})."
        )
    return fit.tasks[0], fit.tasks[1]


def observed_range(observations: Observations) -> tuple[float, float]:
    """Least and greatest share of the first task among mixtures of both tasks."""
    first, second = observations.tasks[:2]
    rows = observations.frame[observations.frame["weight"].between(0, 1, inclusive="neither")]
    shares = rows["weight"].where(rows["task"] == first, 1 - rows["weight"])
    if rows.empty:
        raise TableError(f"{observations.source}: no run mixes {first} and {second}; a frontier needs some.")
    return float(shares.min()), float(shares.max())


def observed_pairs(observations: Observations) -> pd.DataFrame:
    """Both tasks' values of every model trained on the two, averaged over seeds.

    Returns:
        Columns `size`, `weight` (of the first task), `role`, and one column a task.
    """
    first, second = observations.tasks[:2]
    rows = observations.frame
    mixed = rows[rows["weight"].between(0, 1, inclusive="neither")]
    mixed = mixed.assign(share=mixed["weight"].where(mixed["task"] == first, 1 - mixed["weight"]).round(6))
    pairs = mixed.pivot_table(index=["size", "share", "role"], columns="task", values="value", aggfunc="mean")
    return pairs.dropna(subset=[first, second]).reset_index().rename(columns={"share": "weight"})


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """The mixture of least preference-weighted loss at a size."""

    size: float
    weights: dict[str, float]
    predicted: dict[str, float]
    preference: dict[str, float]
    warnings: tuple[str, ...]


def recommend(
    capacity: LawFit, *, size: float, preference: Mapping[str, float] | None = None
) -> Recommendation:
    """The weights p that minimise Σ_i λ_i L_i(N; p_i) under the capacity law.

    Args:
        capacity: A fit of the capacity law to two tasks.
        size: N, parameters.
        preference: λ of each task; equal by default. Only its proportions matter.

    Raises:
        TableError: If the fit does not hold two tasks.
        ValueError: If the preference does not give both tasks positive numbers, or `size` is not positive.
    """
    first, second = two_tasks(capacity)
    shares = dict(preference or {first: 0.5, second: 0.5})
    if set(shares) != {first, second} or min(shares.values()) <= 0:
        raise ValueError(
            f"`preference` must give {first} and {second} a number above 0 each, but is {shares}."
        )
    sign = -1 if capacity.observations.rising else 1

    def cost(weight: float) -> float:
        first_loss, second_loss = frontier(capacity, size=size, weights=[weight]).values[:, 0]
        return sign * float(shares[first] * first_loss + shares[second] * second_loss)

    best = float(
        minimize_scalar(cost, bounds=(1e-3, 1 - 1e-3), method="bounded", options={"xatol": _TOLERANCE}).x
    )
    values = frontier(capacity, size=size, weights=[best]).values[:, 0]
    return Recommendation(
        size=size,
        weights={first: best, second: 1 - best},
        predicted={first: float(values[0]), second: float(values[1])},
        preference=shares,
        warnings=_extrapolation(capacity, best, size),
    )


def _extrapolation(capacity: LawFit, weight: float, size: float) -> tuple[str, ...]:
    warnings = []
    low, high = observed_range(capacity.observations)
    if not low <= weight <= high:
        warnings.append(
            f"the best weight {weight:.3g} lies outside the weights observed ({low:g} to {high:g})."
        )
    largest = float(capacity.observations.frame["size"].max())
    if size > largest:
        warnings.append(
            f"the size is {size / largest:.1f} times the largest observed; the law is extrapolated."
        )
    return tuple(warnings)
