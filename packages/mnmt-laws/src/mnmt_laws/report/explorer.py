"""The numbers that the page's explorer shows: forecasts of mixtures, over a grid of sizes and lengths.

The page chooses among these mixtures, and interpolates between sizes and lengths. So it evaluates no law:
everything it shows was predicted here, by the forecast that the advice rests on.
"""

from __future__ import annotations

import base64
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mnmt_laws.arrays import Array
from mnmt_laws.errors import TableError
from mnmt_laws.fitting.back_test import is_tested
from mnmt_laws.forecasts.forecast import Forecast
from mnmt_laws.report.study import Study

REACH = 10.0
"""Ratio of the greatest size or length of the explorer to the greatest measured."""

_NEAR_ZERO = 1e-3  # times the largest value
_COUNTS = {0: (), 1: (17,), 2: (13, 9)}  # points an axis of a grid of as many axes
_MOST_POINTS = 24_000  # of all tasks: 400 KB of the page, and seconds to predict
_PARTS = (100, 50, 20, 10, 8, 5, 4, 2, 1)  # that mixtures are divided into, evenly spread
_MOST_TRAINED = 100  # trained mixtures among those to choose from
_CHUNK = 2_000  # points predicted at once, times draws and tasks


def explorer_data(study: Study) -> dict[str, Any] | None:
    """Return the data of the explorer; None without a forecast of mixtures of the tasks at any size."""
    advice = study.recommendation
    if advice is None or advice.size is None or advice.forecast.sources != advice.forecast.tasks:
        return None
    forecast, observations = advice.forecast, study.observations
    spans = {"size": _span(forecast, "size")}
    if forecast.knows_length:
        spans["tokens"] = _span(forecast, "tokens")
    axes = _axes(spans)
    tasks, weights = forecast.tasks, list(advice.weights.values())
    parts = _parts(len(tasks), math.prod(map(len, axes.values())))
    mixtures = _mixtures(forecast, weights, parts)
    start: dict[str, Any] = {"size": advice.size, "weights": weights}
    grids = grid_values(forecast, mixtures, axes)
    return {
        "metric": observations.metric,
        "unit": observations.unit,
        "rising": observations.rising,
        "tasks": tasks,
        "importance": [advice.want.importance[task] for task in tasks],
        "size": spans["size"],
        "tokens": spans.get("tokens"),
        "reach": REACH,
        "untested": [axis for axis in spans if not is_tested(forecast.best, axis)],
        "start": start,
        "weights": {task: _weight_range(study, task) for task in tasks},
        "axes": [
            {"name": name, "low": points[0], "high": points[-1], "count": len(points)}
            for name, points in axes.items()
        ],
        "step": 1 / parts,
        "mixtures": mixtures.tolist(),
        "grids": {task: _encode(values) for task, values in grids.items()},
    }


def _span(forecast: Forecast, name: str) -> list[float]:
    """Return the least and greatest fitted value."""
    values = forecast.best.rows[name].dropna()
    return [float(values.min()), float(values.max())]


def _weight_range(study: Study, task: str) -> list[float]:
    rows = study.observations.frame
    weights = rows.loc[(rows["task"] == task) & (rows["weight"] > 0), "weight"]
    return [float(weights.min()), float(weights.max())]


def _axes(spans: Mapping[str, Sequence[float]]) -> dict[str, Array]:
    """Return points at even steps of the logarithm, from the least fitted value to beyond the greatest."""
    counts = _COUNTS[len(spans)]
    return {
        name: np.geomspace(low, REACH * high, count)
        for (name, (low, high)), count in zip(spans.items(), counts, strict=True)
    }


def _parts(count: int, num_points: int) -> int:
    """Return the most parts that mixtures of `count` tasks may be divided into for the page to hold them."""
    most = _MOST_POINTS // (count * num_points)
    # Divided into n parts there are C(n + k - 1, k - 1) mixtures of k tasks.
    return next((n for n in _PARTS if math.comb(n + count - 1, count - 1) <= most), 1)


def _mixtures(forecast: Forecast, start: Sequence[float], parts: int) -> Array:
    """Return (mixtures, tasks) to choose from: evenly spread ones, trained ones, and the first one."""
    count = len(forecast.tasks)
    cuts = itertools.combinations(range(parts + count - 1), count - 1)
    even = np.array([np.diff((-1, *cut, parts + count - 1)) - 1 for cut in cuts]) / parts
    try:
        weights = forecast.observations.mixtures_of(forecast.best.rows)
        trained = weights[forecast.tasks].to_numpy(float)
    except (TableError, KeyError):
        trained = np.empty((0, count))
    trained = np.unique(trained.round(6), axis=0)[:_MOST_TRAINED]
    trained = trained[np.isclose(trained.sum(axis=1), 1.0, atol=1e-5)]
    return np.unique(np.vstack([even, trained, [start]]), axis=0)


def grid_values(forecast: Forecast, mixtures: Array, axes: Mapping[str, Array]) -> dict[str, Array]:
    """Return each task's mean and the 95% interval of a new model, (mixtures, axis points …, 3).

    They are NaN for tasks of weight 0.

    Args:
        forecast: A forecast whose sources are its tasks.
        mixtures: (mixtures, tasks).
        axes: The points of `size`, and of `tokens` where the forecast knows the length.
    """
    first, *others = np.meshgrid(np.arange(len(mixtures)), *axes.values(), indexing="ij")
    points, where = mixtures[first.ravel()], [other.ravel() for other in others]
    parts = []
    for begin in range(0, len(points), _CHUNK):
        rows = slice(begin, begin + _CHUNK)
        at: dict[str, Any] = {name: values[rows] for name, values in zip(axes, where, strict=True)}
        mean, (low, high) = forecast.predict(points[rows], **at)
        parts.append(np.stack([mean, low, high], axis=-1))
    values = np.concatenate(parts, axis=1)
    values[points.T == 0] = np.nan
    return {task: values[number].reshape(*first.shape, 3) for number, task in enumerate(forecast.tasks)}


def _encode(values: Array) -> dict[str, Any]:
    """Return numbers as text; where all are far from 0, their logarithms, which interpolate better."""
    known = values[np.isfinite(values)]
    log = bool(known.min() > _NEAR_ZERO * known.max())
    stored = np.log(values) if log else values
    return {"log": log, "numbers": base64.b64encode(stored.astype("<f4").tobytes()).decode("ascii")}
