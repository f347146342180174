"""The numbers that the page's explorer shows: predictions of mixtures, over a grid of sizes and lengths.

The page chooses among these mixtures, and interpolates between sizes and lengths. So it evaluates no law:
everything it shows was predicted here.
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
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.prediction import predict_interval
from mnmt_laws.report.study import Study

REACH = 10.0
"""Ratio of the greatest size or length of the explorer to the greatest measured."""

_NEAR_ZERO = 1e-3  # times the largest value
_COUNTS = {1: (25,), 2: (21, 11)}  # points an axis of a grid of one or two axes
_MOST_POINTS = 60_000  # of all tasks: 1.6 MB of the page
_PARTS = (200, 100, 50, 20, 10, 8, 5, 4, 2, 1)  # that mixtures are divided into, evenly spread
_MOST_TRAINED = 100  # trained mixtures among those to choose from


def explorer_data(study: Study) -> dict[str, Any] | None:
    """Return the data of the explorer; None where no law predicts every mixture of the tasks."""
    fit, observations = study.law, study.observations
    if not _can_explore(study):
        return None
    start = _start(study)
    names: list[str] = [name for name in ("size", "tokens") if name in fit.law.predictors]
    spans = {name: _span(fit, name) for name in names}
    axes = _axes(spans)
    parts = _parts(len(fit.tasks), math.prod(map(len, axes.values())))
    mixtures = _mixtures(fit, start["weights"], parts)
    return {
        "law": fit.law.name,
        "equation": fit.law.equation,
        "metric": observations.metric,
        "unit": observations.unit,
        "rising": observations.rising,
        "tasks": fit.tasks,
        "size": spans["size"],
        "tokens": spans.get("tokens"),
        "reach": REACH,
        "untested": [axis for axis in spans if not is_tested(fit, axis)],
        "start": start,
        "weights": {task: _weight_range(study, task) for task in fit.tasks},
        "axes": [
            {"name": name, "low": points[0], "high": points[-1], "count": len(points)}
            for name, points in axes.items()
        ],
        "step": 1 / parts,
        "mixtures": mixtures.tolist(),
        "grids": {task: _encode(values) for task, values in grid_values(fit, mixtures, axes).items()},
    }


def _can_explore(study: Study) -> bool:
    """Return whether the law predicts every mixture of the fitted tasks at any size."""
    fit = study.law
    known = fit.parameters.to_array().notnull()
    return (
        (study.has_mixtures or len(fit.tasks) == 1)
        and {"size"} <= set(fit.law.predictors) <= {"size", "tokens", "weight", "partners"}
        and fit.sources == fit.tasks
        and all(bool(known.sel(task=task).any()) for task in fit.tasks)
    )


def _start(study: Study) -> dict[str, Any]:
    """Return the first size and weights of the explorer: the advised ones, if there are any."""
    advice, tasks = study.recommendation, study.law.tasks
    if advice is None or set(advice.weights) != set(tasks):
        return {"size": study.sizes[-1], "weights": [1 / len(tasks)] * len(tasks)}
    return {"size": advice.size, "weights": [advice.weights[task] for task in tasks]}


def _span(fit: LawFit, name: str) -> list[float]:
    """Return the least and greatest fitted value."""
    values = fit.rows[name].dropna()
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


def _mixtures(fit: LawFit, start: Sequence[float], parts: int) -> Array:
    """Return (mixtures, tasks) to choose from: evenly spread ones, trained ones, and the first one."""
    count = len(fit.tasks)
    cuts = itertools.combinations(range(parts + count - 1), count - 1)
    even = np.array([np.diff((-1, *cut, parts + count - 1)) - 1 for cut in cuts]) / parts
    try:
        trained = fit.observations.mixtures_of(fit.rows)[fit.tasks].to_numpy(float)
    except (TableError, KeyError):
        trained = np.empty((0, count))
    trained = np.unique(trained.round(6), axis=0)[:_MOST_TRAINED]
    trained = trained[np.isclose(trained.sum(axis=1), 1.0, atol=1e-5)]
    return np.unique(np.vstack([even, trained, [start]]), axis=0)


def grid_values(fit: LawFit, mixtures: Array, axes: Mapping[str, Array]) -> dict[str, Array]:
    """Return each task's estimate, law interval and prediction interval, (mixtures, axis points …, 5).

    They are NaN for tasks of weight 0, unless the law knows them.

    Args:
        fit: A law whose sources are its tasks.
        mixtures: (mixtures, tasks).
        axes: The points of `size`, and of `tokens` where the law knows the length.
    """
    answers = {}
    for number, task in enumerate(fit.tasks):
        known = mixtures[:, number] > (-1 if fit.law.zero_shot else 0)
        first, *others = np.meshgrid(np.flatnonzero(known), *axes.values(), indexing="ij")
        mixture = {other: mixtures[first, column] for column, other in enumerate(fit.tasks)}
        where: dict[str, Any] = dict(zip(axes, others, strict=True))
        answer = predict_interval(fit, task=task, mixture=mixture, **where)
        ends = (answer.predicted, answer.law_lower, answer.law_upper, answer.lower, answer.upper)
        answers[task] = np.full((len(mixtures), *first.shape[1:], len(ends)), np.nan)
        answers[task][known] = np.stack(ends, axis=-1)
    return answers


def _encode(values: Array) -> dict[str, Any]:
    """Return numbers as text; where all are far from 0, their logarithms, which interpolate better."""
    known = values[np.isfinite(values)]
    log = bool(known.min() > _NEAR_ZERO * known.max())
    stored = np.log(values) if log else values
    return {"log": log, "numbers": base64.b64encode(stored.astype("<f4").tobytes()).decode("ascii")}
