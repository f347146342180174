"""Means over the texts of a comparison, with translation out of English and into it apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mnmt_eval.compare.comparison import Comparison, MetricComparison
from mnmt_eval.language import group_directions
from mnmt_eval.metrics.protocol import Floats
from mnmt_eval.metrics.resampling import interval_of

ALL = "all"


@dataclass(frozen=True, kw_only=True)
class Mean:
    """A mean over tasks with its 95% bootstrap interval."""

    value: float
    lower: float
    upper: float


@dataclass(frozen=True, kw_only=True)
class SystemAverage:
    """One system's mean over tasks."""

    system: str
    mean: Mean
    difference: Mean | None
    """The mean less the baseline's; None for the baseline itself, or without one."""


@dataclass(frozen=True, kw_only=True)
class DirectionAverage:
    """A metric's mean over the tasks of a direction, each counting once."""

    metric: str
    direction: str
    """`En→XX`, `XX→En` or `XX→YY`, or `all`."""
    tasks: tuple[str, ...]
    systems: tuple[SystemAverage, ...]


def average_directions(comparisons: Sequence[Comparison]) -> tuple[DirectionAverage, ...]:
    """Average each metric over the tasks of each direction, and over all, as Zhang et al. 2022, table 3.

    An interval is of the mean of the tasks' resamples. With one seed, texts of equally many sentences are
    resampled alike, so those that are translations of the same sentences vary together, as they should.

    Args:
        comparisons: Systems by the same metrics on texts of different tasks.

    Returns:
        The means of systems that are in every comparison; none if no system is, or a task is not known.
    """
    names = [name for name in _systems(comparisons[0]) if all(name in _systems(each) for each in comparisons)]
    if not names or not all(comparison.task for comparison in comparisons):
        return ()
    baseline = comparisons[0].baseline if comparisons[0].baseline in names else None
    by_task = {comparison.task: comparison for comparison in comparisons}
    directions = group_directions(by_task)
    directions = {ALL: list(by_task)} if len(directions) == 1 else {**directions, ALL: list(by_task)}
    return tuple(
        DirectionAverage(
            metric=metric.metric,
            direction=direction,
            tasks=tuple(tasks),
            systems=_average([by_task[task].metrics[place] for task in tasks], names, baseline),
        )
        for place, metric in enumerate(comparisons[0].metrics)
        for direction, tasks in directions.items()
    )


def _systems(comparison: Comparison) -> list[str]:
    return [score.system for score in comparison.metrics[0].scores]


def _average(
    metrics: Sequence[MetricComparison], names: Sequence[str], baseline: str | None
) -> tuple[SystemAverage, ...]:
    of_tasks = [{score.system: score.value for score in metric.scores} for metric in metrics]
    values = np.array([[of_task[name] for name in names] for of_task in of_tasks]).mean(axis=0)
    resampled = np.array([[metric.resampled[name] for name in names] for metric in metrics]).mean(axis=0)
    base = None if baseline is None else names.index(baseline)
    return tuple(
        SystemAverage(
            system=name,
            mean=_mean(resampled[place], values[place]),
            difference=None
            if base in (None, place)
            else _mean(resampled[place] - resampled[base], values[place] - values[base]),
        )
        for place, name in enumerate(names)
    )


def _mean(resampled: Floats, value: float) -> Mean:
    interval = interval_of(resampled, value=float(value), signature="")
    return Mean(value=interval.value, lower=interval.lower, upper=interval.upper)
