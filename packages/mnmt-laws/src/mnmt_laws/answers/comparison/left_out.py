"""Errors of laws on sizes, lengths and mixtures that they were fitted without."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from mnmt_laws.arrays import Array
from mnmt_laws.errors import TableError
from mnmt_laws.fitting.back_test import BackTest, back_test
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.refits import refit_like
from mnmt_laws.forecasts.rivals import is_keyed

ERRORS = {"size_error": "size", "length_error": "tokens", "mixture_error": "mixture"}
"""The columns of errors, and the axis that is left out for each."""


def left_out_errors(fit: LawFit) -> pd.DataFrame:
    """Return root mean square relative errors on rows that a law was not fitted to, a row for each task.

    A law that cannot predict the left-out rows has NaN. A law keyed by weight predicts a left-out weight with
    parameters interpolated between its neighbours, linearly in log p; then `interpolated` is True.
    """
    tests = {column: back_test(fit, left_out=axis) for column, axis in ERRORS.items()}  # type: ignore[arg-type]
    rows = []
    for task in fit.tasks:
        row: dict[str, Any] = {
            "task": task,
            **{column: _error_of(test, task) for column, test in tests.items()},
        }
        interpolated = is_keyed(fit.law)
        if interpolated:
            row["mixture_error"] = _weight_error(fit, task)
        rows.append({**row, "interpolated": interpolated and math.isfinite(row["mixture_error"])})
    return pd.DataFrame(rows).set_index("task")


def _error_of(test: BackTest | None, task: str) -> float:
    if test is None:
        return math.nan
    rows = test.rows[test.rows["task"] == task]
    return _error(rows["predicted"].to_numpy(float), rows["observed"].to_numpy(float))


def _error(predicted: Array, observed: Array) -> float:
    return float(np.sqrt(np.mean((predicted / observed - 1) ** 2))) if len(observed) else math.nan


def _weight_error(fit: LawFit, task: str) -> float:
    """Return the error at inner weights, each left out in turn; NaN without inner weights."""
    frame = fit.observations.frame
    of_task = frame["task"].eq(task) & frame["role"].eq("fit")
    parts = []
    for weight in np.unique(frame.loc[of_task, "weight"])[1:-1]:
        out = of_task & frame["weight"].eq(weight)
        try:
            refitted = refit_like(
                fit, frame=frame.assign(role=frame["role"].mask(~of_task | out, "left-out"))
            )
        except TableError:
            return math.nan
        predicted = _predict_between_weights(refitted, task, float(weight), frame.loc[out])
        parts.append(np.stack([predicted, frame.loc[out, "value"].to_numpy(float)]))
    return _error(*np.concatenate(parts, axis=1)) if parts else math.nan


def _predict_between_weights(fit: LawFit, task: str, weight: float, rows: pd.DataFrame) -> Array:
    """Return predictions at a weight that was not fitted, with parameters between its neighbours'."""
    values = {}
    for name, variable in fit.parameters.sel(task=task).data_vars.items():
        if "weight" not in variable.dims:
            values[str(name)] = np.array([float(variable)])
            continue
        neighbours = variable.dropna("weight")
        heights = np.log(np.maximum(neighbours.values, 1e-300)) if name == "beta" else neighbours.values
        height = np.interp(math.log(weight), np.log(neighbours.weight.values), heights)
        values[str(name)] = np.array([math.exp(height) if name == "beta" else height])
    sign = -1 if fit.observations.rising else 1
    x = {name: rows[name].to_numpy(float) for name in fit.law.predictors if name in rows}
    return fit.law.predict(x, values, sign)
