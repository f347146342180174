"""Say which parameters a fit left at the end of their range."""

from __future__ import annotations

import numpy as np
import xarray as xr

from mnmt_laws.capacity import SHAPE_BOUNDS
from mnmt_laws.observations import Observations
from mnmt_laws.search import ALPHA_BOUNDS

_NEAR = 1e-6


def bound_warnings(estimate: xr.Dataset, observations: Observations) -> list[str]:
    """A line for each parameter at a bound: there the data ask for a value the law forbids."""
    warnings = []
    for name in ("alpha", "beta", "l_inf", "c1", "c2", "c3"):
        if name in estimate:
            warnings += _of_variable(name, estimate[name], observations)
    return warnings


def _of_variable(name: str, variable: xr.DataArray, observations: Observations) -> list[str]:
    flat = variable.stack(cell=variable.dims)
    warnings = []
    for value in flat:
        task = str(value.task.item())
        weight = float(value.weight) if "weight" in variable.dims else None
        for end, bound in zip(("lower", "upper"), _range(name, task, weight, observations), strict=True):
            if np.isfinite(bound) and abs(float(value) - bound) <= _NEAR * max(1.0, abs(bound)):
                where = task if weight is None else f"{task} at weight {weight:g}"
                warnings.append(
                    f"{where}: {name} is at its {end} bound {bound:g}; the data do not determine it."
                )
    return warnings


def _range(name: str, task: str, weight: float | None, observations: Observations) -> tuple[float, float]:
    if name == "alpha":
        return ALPHA_BOUNDS
    if name in SHAPE_BOUNDS:
        return SHAPE_BOUNDS[name]
    if name == "beta":
        return 0.0, np.inf
    rows = observations.fit
    own = rows[rows["task"].eq(task) & (rows["weight"].eq(weight) if weight is not None else True)]
    values = own["value"]
    return (float(values.max()), np.inf) if observations.rising else (0.0, float(values.min()))
