"""A fit's parameters as a flat list: for JSON and for printed tables."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from mnmt_laws.results import LawFit

ORDER = ("alpha", "beta", "l_inf", "c1", "c2", "c3")


def parameter_frame(fit: LawFit) -> pd.DataFrame:
    """One row a parameter: task, weight (NaN where shared by all), name, value, std."""
    std = fit.std
    rows = []
    for task in fit.tasks:
        for name in (name for name in ORDER if name in fit.parameters):
            variable = fit.parameters[name].sel(task=task)
            spread = std[name].sel(task=task)
            weights = variable.dropna("weight").weight.values if "weight" in variable.dims else [math.nan]
            for weight in weights:
                where = {} if math.isnan(weight) else {"weight": weight}
                rows.append((task, weight, name, float(variable.sel(where)), float(spread.sel(where))))
    return pd.DataFrame(rows, columns=["task", "weight", "name", "value", "std"])


def fit_document(fit: LawFit) -> dict[str, Any]:
    """What `mnmt-laws fit --json` prints; weight and std are null where there is none."""
    rows = parameter_frame(fit).to_dict("records")
    return {
        "law": fit.law.name,
        "objective": fit.objective,
        "converged": fit.converged,
        "parameters": [{str(key): null_if_nan(value) for key, value in row.items()} for row in rows],
        "warnings": list(fit.warnings),
    }


def null_if_nan(value: Any) -> Any:
    """`value`, or None if it is NaN or infinite, which JSON cannot hold."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def format_fit(fit: LawFit) -> str:
    """The parameters as a table to read."""
    frame = parameter_frame(fit)
    shown = pd.DataFrame(
        {
            "task": frame["task"],
            "weight": ["all" if math.isnan(weight) else f"{weight:g}" for weight in frame["weight"]],
            "parameter": frame["name"],
            "value": [f"{value:.6g}" for value in frame["value"]],
            "std": ["unknown" if math.isnan(std) else f"{std:.2g}" for std in frame["std"]],
        }
    )
    return f"{fit.law.formula}\n{fit.law.equation}; {fit.objective}\n\n{shown.to_string(index=False)}"
