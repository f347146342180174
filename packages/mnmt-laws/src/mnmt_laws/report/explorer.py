"""What the page's interactive frontier calculates with: the capacity law, its refits, and the models."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from mnmt_laws.answers.frontier import observed_range
from mnmt_laws.figures.correction import NOTE, marked_pairs
from mnmt_laws.figures.style import format_size
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.report.analysis import Analysis

SCRIPTS = ("capacity.js", "plot.js", "readout.js", "mixture.js", "frontier.js", "explorer.js")
"""The page's scripts, in the order in which they build on each other."""

_MOST_DRAWS = 200


def explorer_data(analysis: Analysis) -> dict[str, Any] | None:
    """The numbers that the page embeds; None without mixtures of tasks, or without a capacity law."""
    fit, observations = explored_fit(analysis), analysis.observations
    laws = {task: _laws(fit.parameters.expand_dims("draw"), task) for task in fit.tasks}
    if not analysis.has_mixtures or not all(laws.values()):
        return None
    data: dict[str, Any] = {
        "equation": fit.law.equation,
        "metric": observations.metric,
        "unit": observations.unit,
        "rising": observations.rising,
        "sizes": analysis.sizes,
        "tasks": [_task(fit, task, laws[task][0]) for task in fit.tasks],
    }
    if analysis.has_frontier:
        data |= {"range": list(observed_range(observations)), "models": _models(analysis)}
    return data


def explored_fit(analysis: Analysis) -> LawFit:
    """The law of whole mixtures where there is one, which tells partners apart; else the capacity law."""
    return analysis.capacity if analysis.more_tasks is None else analysis.more_tasks.fit


def _task(fit: LawFit, task: str, law: dict[str, Any]) -> dict[str, Any]:
    weights = fit.fitted_weights(task)
    draws = _laws(fit.draws.isel(draw=slice(_MOST_DRAWS)), task)
    return {"name": task, "law": law, "draws": draws, "weights": [float(weights.min()), float(weights.max())]}


def _laws(parameters: xr.Dataset, task: str) -> list[dict[str, Any]]:
    """A task's parameters in every draw that found them all; by partner where they vary with it."""
    own = parameters.sel(task=task)
    if "partner" in own.dims:
        own = own.sel(partner=own.partner != task)
    draws = (own.isel(draw=draw) for draw in range(own.sizes["draw"]))
    return [_numbers(draw) for draw in draws if bool(np.isfinite(draw.to_array()).all())]


def _numbers(draw: xr.Dataset) -> dict[str, Any]:
    return {
        str(name): variable.to_series().to_dict() if "partner" in variable.dims else float(variable)
        for name, variable in draw.data_vars.items()
    }


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
