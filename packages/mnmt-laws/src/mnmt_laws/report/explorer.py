"""The numbers that the page's explorer calculates with."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from scipy.stats import t

from mnmt_laws.arrays import Array
from mnmt_laws.fitting.back_test import is_tested
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.prediction import measure_noise, model_error
from mnmt_laws.laws.capacity import Capacity
from mnmt_laws.laws.exposure import CapacityShare
from mnmt_laws.laws.law import Law
from mnmt_laws.laws.length import Length
from mnmt_laws.laws.mixture import Mixture
from mnmt_laws.report.analysis import Analysis
from mnmt_laws.solver.objective import find_objective

LEAST_WEIGHT = 1e-3
MOST_DRAWS = 200
REACH = 10.0
"""Sizes and lengths go from the smallest measured to so many times the largest."""

_NEAR_ZERO = 1e-3  # times the largest value
_COUNTS = {1: (97,), 2: (49, 61), 3: (25, 33, 13)}  # points an axis of a grid of so many axes


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One axis of a grid: points at equal steps on a scale."""

    name: str
    """`size`, `weight` or `tokens`."""

    scale: str
    """`log` or `logit`."""

    low: float
    high: float
    count: int

    @property
    def points(self) -> Array:
        """The points in their own unit."""
        if self.scale == "log":
            return np.geomspace(self.low, self.high, self.count)
        ends = np.log(self.low / (1 - self.low)), np.log(self.high / (1 - self.high))
        return np.asarray(1 / (1 + np.exp(-np.linspace(*ends, self.count))))


def has_formula(law: Law) -> bool:
    """Return whether the page's script has the formula of a law."""
    return isinstance(law, (Capacity, Length)) or (isinstance(law, Mixture) and law.sized)


def explorer_data(analysis: Analysis) -> dict[str, Any] | None:
    """Return what the explorer knows; None where no law predicts every mixture of the tasks."""
    fit, observations = analysis.law, analysis.observations
    estimates = fit.parameters.to_array().notnull()
    if not analysis.has_mixtures and len(fit.tasks) > 1:
        return None
    if "size" not in fit.law.predictors or fit.sources != fit.tasks:
        return None
    if len(fit.tasks) > 2 and not has_formula(fit.law):
        return None
    if not all(bool(estimates.sel(task=task).any()) for task in fit.tasks):
        return None
    data: dict[str, Any] = {
        "law": fit.law.name,
        "equation": fit.law.equation,
        "metric": observations.metric,
        "unit": observations.unit,
        "rising": observations.rising,
        "tasks": fit.tasks,
        "size": _span(analysis, "size"),
        "tokens": _span(analysis, "tokens") if "tokens" in fit.law.predictors else None,
        "reach": REACH,
        "untested": [axis for axis in ("size", "tokens") if not is_tested(fit, axis)],
        "start": _start(analysis, fit.tasks),
        "weights": {task: _weight_range(analysis, task) for task in fit.tasks},
    }
    return data | (_grid(fit, data) if len(fit.tasks) < 3 else _formulas(fit))


def _span(analysis: Analysis, name: str) -> list[float]:
    """Return the least and greatest fitted value."""
    values = analysis.law.rows[name].dropna()
    return [float(values.min()), float(values.max())]


def _start(analysis: Analysis, tasks: Sequence[str]) -> dict[str, Any]:
    """Return the size and the weights with which the explorer begins: the advised ones, if there are any."""
    advice = analysis.recommendation
    if advice is None or set(advice.weights) != set(tasks):
        return {"size": analysis.sizes[-1], "weights": [1 / len(tasks)] * len(tasks)}
    return {"size": advice.size, "weights": [advice.weights[task] for task in tasks]}


def _weight_range(analysis: Analysis, task: str) -> list[float]:
    rows = analysis.observations.frame
    weights = rows.loc[(rows["task"] == task) & (rows["weight"] > 0), "weight"]
    return [float(weights.min()), float(weights.max())]


def _grid(fit: LawFit, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the law of one or two tasks as a grid over size, weight and length, to interpolate in."""
    axes = _axes(data, len(fit.tasks))
    points = [array.ravel() for array in np.meshgrid(*(axis.points for axis in axes), indexing="ij")]
    where = dict(zip((axis.name for axis in axes), points, strict=True))
    values = grid_values(fit, where)
    described = [
        {"name": axis.name, "scale": axis.scale, "low": axis.low, "high": axis.high, "count": axis.count}
        for axis in axes
    ]
    return {"axes": described, "grids": {task: _encode(values[task]) for task in fit.tasks}}


def _axes(data: Mapping[str, Any], num_tasks: int) -> list[Axis]:
    spans = [("size", "log", data["size"][0], REACH * data["size"][1])]
    if num_tasks == 2:
        spans.append(("weight", "logit", LEAST_WEIGHT, 1 - LEAST_WEIGHT))
    if data["tokens"]:
        spans.append(("tokens", "log", data["tokens"][0], REACH * data["tokens"][1]))
    counts = _COUNTS[len(spans)]
    return [
        Axis(name=name, scale=scale, low=low, high=high, count=count)
        for (name, scale, low, high), count in zip(spans, counts, strict=True)
    ]


def grid_values(fit: LawFit, where: Mapping[str, Array]) -> dict[str, Array]:
    """Return each task's estimate, law interval and prediction interval, (points, 5).

    Args:
        fit: A law of one or two tasks.
        where: (points,) `size`, and `weight` of the first of two tasks and `tokens` where they matter.
    """
    weight = where.get("weight", np.ones_like(where["size"]))
    mixture = dict(zip(fit.tasks, (weight, 1 - weight), strict=False))
    predictors: dict[str, Any] = {name: values for name, values in where.items() if name != "weight"}
    answers = {}
    for task in fit.tasks:
        answer = fit.prediction_interval(task=task, mixture=mixture, **predictors)
        ends = (answer.predicted, answer.law_lower, answer.law_upper, answer.lower, answer.upper)
        answers[task] = np.stack(ends, axis=1)
    return answers


def _encode(values: Array) -> dict[str, Any]:
    """Return (points, 5) numbers as text; their logarithms, which bend less, where none is near 0."""
    known = values[np.isfinite(values)]
    log = bool(known.min() > _NEAR_ZERO * known.max())
    stored = np.log(values) if log else values
    return {"log": log, "numbers": base64.b64encode(stored.astype("<f4").tobytes()).decode("ascii")}


def _formulas(fit: LawFit) -> dict[str, Any]:
    """Return the parameters of a law of more tasks and of its refits, for its formula in the page."""
    laws = {
        task: {
            "estimate": _parameters(fit.parameters.expand_dims("draw"), task)[0],
            "draws": _parameters(fit.draws.isel(draw=slice(MOST_DRAWS)), task),
            "spread": _spread(fit, task),
        }
        for task in fit.tasks
    }
    law = fit.law if isinstance(fit.law, Length) else None
    form = {
        "sign": -1 if fit.observations.rising else 1,
        "zeroShot": fit.law.zero_shot,
        "share": law is not None and isinstance(law.exposure, CapacityShare),
        "tied": law is not None and law.tied,
    }
    return {"laws": laws, "log": find_objective(fit.objective).log, "form": form}


def _spread(fit: LawFit, task: str) -> dict[str, Any]:
    """Return how far a new model lies from the law: t s within the data, and what is added beyond it.

    Beyond the sizes and lengths `low` to `high`, s is √(1 + Σ excess d²) times as large, d the logarithm of
    the distance along an axis; see `mnmt_laws.fitting.prediction`.
    """
    noise, rows = measure_noise(fit, task), fit.rows[fit.rows["task"] == task]
    within = t.ppf(0.975, noise.freedom) * np.sqrt(noise.variance) if noise.freedom > 0 else np.nan
    axes = {}
    for name in (name for name in ("size", "tokens") if name in fit.law.predictors):
        low, high = float(rows[name].min()), float(rows[name].max())
        at: dict[str, Array] = {name: np.array([np.e * high])}
        excess = float(model_error(fit, task, at)[0]) if np.isfinite(within) else 0.0
        axes[name] = {"low": low, "high": high, "excess": excess}
    return {"within": float(within) if np.isfinite(within) else None, "axes": axes}


def _parameters(parameters: xr.Dataset, task: str) -> list[dict[str, Any]]:
    """Return a task's parameters in every draw that determines all; by partner where they vary with it."""
    estimates = parameters.sel(task=task)
    if "partner" in estimates.dims:
        estimates = estimates.sel(partner=estimates.partner != task)
    draws = (estimates.isel(draw=draw) for draw in range(estimates.sizes["draw"]))
    return [_numbers(draw) for draw in draws if bool(np.isfinite(draw.to_array()).all())]


def _numbers(draw: xr.Dataset) -> dict[str, Any]:
    return {
        str(name): variable.to_series().to_dict() if "partner" in variable.dims else float(variable)
        for name, variable in draw.data_vars.items()
    }
