"""Means over the texts of a comparison, with translation out of English and into it apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mnmt_eval.compare.comparison import Estimate, MetricComparison, TextComparison, estimate
from mnmt_eval.language import group_directions
from mnmt_eval.metrics.protocol import Floats
from mnmt_eval.metrics.resampling import interval_of
from mnmt_eval.metrics.significance import holm, mean_differences

ALL = "all"


@dataclass(frozen=True, kw_only=True)
class MeanDifference(Estimate):
    """A mean less the baseline's, with a paired test."""

    p_value: float
    corrected_p_value: float
    """The p-value after Holm's correction for the systems and directions of a metric."""


@dataclass(frozen=True, kw_only=True)
class SystemAverage:
    """One system's mean over tasks."""

    system: str
    mean: Estimate
    difference: MeanDifference | None
    """The mean less the baseline's; None for the baseline itself, or if tasks have other baselines."""


@dataclass(frozen=True, kw_only=True)
class DirectionAverage:
    """A metric's mean over the tasks of a direction, each counting once."""

    metric: str
    title: str
    """The metric's name, with a note if lower is better."""
    decimals: int
    """The decimals of its values that are worth reading."""
    direction: str
    """`En→XX`, `XX→En` or `XX→YY`, or `all`."""
    tasks: tuple[str, ...]
    systems: tuple[SystemAverage, ...]


def average_directions(comparisons: Sequence[TextComparison]) -> tuple[DirectionAverage, ...]:
    """Average each metric over the tasks of each direction, and over all, as Zhang et al. 2022, table 3.

    Intervals and tests average the tasks' resamples and draws. With one seed, texts of equally many sentences
    have the same draws, so translations of the same sentences vary together, as they should.

    Args:
        comparisons: Systems by the same metrics and with the same options on texts of different tasks.

    Returns:
        The means of systems that are in every comparison. Empty if there is one text, if no system is in all,
        or if a task is unknown or has several texts.
    """
    names = [name for name in _systems(comparisons[0]) if all(name in _systems(each) for each in comparisons)]
    by_task = {comparison.task: comparison for comparison in comparisons}
    if not names or "" in by_task or not 1 < len(by_task) == len(comparisons):
        return ()
    directions = group_directions(by_task)
    directions = {ALL: list(by_task)} if len(directions) == 1 else {**directions, ALL: list(by_task)}
    return tuple(
        average
        for place in range(len(comparisons[0].metrics))
        for average in _correct(
            [
                _average(direction, [by_task[task] for task in tasks], place, names)
                for direction, tasks in directions.items()
            ]
        )
    )


def _systems(comparison: TextComparison) -> list[str]:
    return [score.system for score in comparison.metrics[0].scores]


def _average(
    direction: str, comparisons: Sequence[TextComparison], place: int, names: Sequence[str]
) -> DirectionAverage:
    """Average the metric in a place over the tasks of a direction."""
    metrics = [comparison.metrics[place] for comparison in comparisons]
    baseline, *others = {comparison.baseline for comparison in comparisons}
    return DirectionAverage(
        metric=metrics[0].metric,
        title=metrics[0].title,
        decimals=metrics[0].decimals,
        direction=direction,
        tasks=tuple(comparison.task for comparison in comparisons),
        systems=tuple(
            SystemAverage(
                system=name,
                mean=Estimate(**_interval(_value(metrics, name), _resampled(metrics, name))),
                difference=None
                if others or baseline not in names or baseline == name
                else _difference(metrics, str(baseline), name),
            )
            for name in names
        ),
    )


def _difference(metrics: Sequence[MetricComparison], baseline: str, name: str) -> MeanDifference:
    """Test the mean difference of a system from the baseline, not corrected yet."""
    value = _value(metrics, name) - _value(metrics, baseline)
    resampled = _resampled(metrics, name) - _resampled(metrics, baseline)
    draws = mean_differences([metric.differences[name] for metric in metrics])
    return MeanDifference(
        **_interval(value, resampled), p_value=draws.p_value, corrected_p_value=draws.p_value
    )


def _correct(averages: Sequence[DirectionAverage]) -> list[DirectionAverage]:
    tested = [system.difference.p_value for each in averages for system in each.systems if system.difference]
    p_values = iter(holm(tested))
    return [
        replace(each, systems=tuple(_with_corrected(system, p_values) for system in each.systems))
        for each in averages
    ]


def _with_corrected(system: SystemAverage, p_values: Iterator[float]) -> SystemAverage:
    """Return a system whose difference, if it has one, has the next corrected p-value."""
    if system.difference is None:
        return system
    return replace(system, difference=replace(system.difference, corrected_p_value=next(p_values)))


def _value(metrics: Sequence[MetricComparison], name: str) -> float:
    """Return a system's mean over tasks."""
    return float(
        np.mean([score.value for metric in metrics for score in metric.scores if score.system == name])
    )


def _resampled(metrics: Sequence[MetricComparison], name: str) -> Floats:
    """Return a system's mean over tasks on each resample, (samples,)."""
    return np.asarray(np.mean([metric.resampled[name] for metric in metrics], axis=0))


def _interval(value: float, resampled: Floats) -> dict[str, float]:
    """Return a value with the ends of its interval."""
    return estimate(interval_of(resampled, value=value, signature=""))
