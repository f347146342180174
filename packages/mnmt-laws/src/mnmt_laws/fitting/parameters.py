"""A fit's parameters as a flat list, for JSON and for printed tables."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import asdict
from typing import Any

import pandas as pd
import xarray as xr

from mnmt_laws.fitting.law_fit import LawFit


def parameter_frame(fit: LawFit) -> pd.DataFrame:
    """Return one row for each parameter: task, weight, partner, name, value, std, lower, upper.

    `weight` is NaN and `partner` empty where a value is for all.
    `lower` and `upper` bound the central 95% of the refits; they and `std` are NaN without refits.
    """
    std, interval = fit.std, fit.interval()
    rows = []
    for task in fit.tasks:
        for name, variable in fit.parameters.sel(task=task).data_vars.items():
            spreads = (std[name], interval[name].sel(bound="lower"), interval[name].sel(bound="upper"))
            for where in _places(variable):
                numbers = (float(spread.sel(task=task, **where)) for spread in spreads)
                labels = (where.get("weight", math.nan), where.get("partner", ""))
                rows.append((task, *labels, str(name), float(variable.sel(where)), *numbers))
    return pd.DataFrame(rows, columns=["task", "weight", "partner", "name", "value", "std", "lower", "upper"])


def _places(variable: xr.DataArray) -> list[dict[str, Any]]:
    """Return the coordinates at which a task's parameter has values."""
    along = next((dim for dim in ("weight", "partner") if dim in variable.dims), None)
    if along is None:
        return [{}]
    return [{along: label} for label in variable.dropna(along)[along].values.tolist()]


def fit_document(fit: LawFit) -> dict[str, Any]:
    """Return the JSON document of `mnmt-laws fit`; absent weights and standard deviations are null."""
    rows = parameter_frame(fit).to_dict("records")
    attrs = fit.parameters.attrs
    return {
        "law": fit.law.name,
        "equation": fit.law.equation,
        "formula": fit.law.formula,
        "objective": fit.objective,
        "uncertainty": attrs["uncertainty"],
        "prior": attrs["prior"],
        "converged": fit.converged,
        "parameters": [{str(key): null_if_nan(value) for key, value in row.items()} for row in rows],
        "diagnostics": [asdict(line) for line in fit.diagnostics],
        "warnings": list(fit.warnings),
    }


def null_if_nan(value: Any) -> Any:
    """Return `value`, or None if it is NaN or infinite, which JSON cannot hold."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def format_fit(fit: LawFit) -> str:
    """Return the parameters as a table in text."""
    frame = parameter_frame(fit)
    table = pd.DataFrame(
        {
            "task": frame["task"],
            "weight": [_label(row) for row in frame.to_dict("records")],
            "parameter": frame["name"],
            "value": [f"{value:.6g}" for value in frame["value"]],
            "std": ["unknown" if math.isnan(std) else f"{std:.2g}" for std in frame["std"]],
        }
    )
    prior = f"; prior {fit.parameters.attrs['prior']}" if fit.prior == "weak" else ""
    return f"{fit.law.formula}\n{fit.law.equation}; {fit.objective}{prior}\n\n{table.to_string(index=False)}"


def _label(row: Mapping[Hashable, Any]) -> str:
    if row["partner"]:
        return f"with {row['partner']}"
    return "all" if math.isnan(row["weight"]) else f"{row['weight']:g}"
