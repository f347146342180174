"""What the page's interactive frontier calculates with: the capacity law, its refits, and the models."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from mnmt_laws.figures.correction import NOTE, marked_pairs
from mnmt_laws.figures.style import format_size
from mnmt_laws.frontier import observed_range
from mnmt_laws.report.analysis import Analysis

SCRIPTS = ("capacity.js", "plot.js", "readout.js", "mixture.js", "frontier.js", "explorer.js")
"""The page's scripts, in the order in which they build on each other."""

_MOST_DRAWS = 200


def explorer_data(analysis: Analysis) -> dict[str, Any] | None:
    """The numbers that the page embeds; None without mixtures of tasks, or without a capacity law."""
    fit, observations = analysis.capacity, analysis.observations
    if not analysis.has_mixtures or not _finite(fit.parameters).all():
        return None
    draws = fit.draws.isel(draw=_finite(fit.draws).all("task").values).isel(draw=slice(_MOST_DRAWS))
    data: dict[str, Any] = {
        "metric": observations.metric,
        "unit": observations.unit,
        "rising": observations.rising,
        "sizes": analysis.sizes,
        "tasks": [_task(analysis, task, draws) for task in analysis.tasks],
    }
    if analysis.has_frontier:
        data |= {"range": list(observed_range(observations)), "models": _models(analysis)}
    return data


def _finite(parameters: xr.Dataset) -> xr.DataArray:
    """Whether all parameters are known, over task and, if there are any, draws."""
    finite: xr.DataArray = (abs(parameters.to_array()) < np.inf).all("variable")
    return finite


def _task(analysis: Analysis, task: str, draws: xr.Dataset) -> dict[str, Any]:
    weights = analysis.capacity.fitted_weights(task)
    own = draws.sel(task=task).to_dataframe()[list(draws.data_vars)]
    return {
        "name": task,
        "law": _numbers(analysis.capacity.parameters.sel(task=task)),
        "draws": own.to_dict("records"),
        "weights": [float(weights.min()), float(weights.max())],
    }


def _numbers(parameters: xr.Dataset) -> dict[str, float]:
    return {str(name): float(variable) for name, variable in parameters.data_vars.items()}


def _models(analysis: Analysis) -> list[dict[str, Any]]:
    """Every trained model of both tasks, the mean of its seeds."""
    tasks = analysis.tasks
    return [
        {
            "size": row["size"],
            "values": [row[task] for task in tasks],
            "role": row["role"],
            "corrected": row["corrected"],
            "label": _label(row, tasks),
        }
        for row in marked_pairs(analysis.observations).to_dict("records")
    ]


def _label(row: Mapping[Hashable, Any], tasks: list[str]) -> str:
    """`9.46K, p = 30% en-de: en-de 0.814, en-zh 0.902 (held out)`."""
    values = ", ".join(f"{task} {row[task]:.4g}" for task in tasks)
    notes = ["held out"] * (row["role"] == "held-out") + [NOTE] * row["corrected"]
    noted = f" ({', '.join(notes)})" if notes else ""
    return f"{format_size(row['size'])}, p = {100 * row['weight']:.3g}% {tasks[0]}: {values}{noted}"
