"""Means over the texts of a comparison, with translation out of English and into it apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mnmt_eval.compare.comparison import Comparison
from mnmt_eval.language import group_directions

ALL = "all"


@dataclass(frozen=True, kw_only=True)
class DirectionAverage:
    """A metric's mean over the tasks of a direction, each counting once."""

    metric: str
    direction: str
    """`En→XX`, `XX→En` or `XX→YY`, or `all`."""
    tasks: tuple[str, ...]
    values: Mapping[str, float]
    """{system: its mean}."""


def average_directions(comparisons: Sequence[Comparison]) -> tuple[DirectionAverage, ...]:
    """Average each metric over the tasks of each direction, and over all, as Zhang et al. 2022, table 3.

    Args:
        comparisons: The same systems by the same metrics on texts of different tasks.
    """
    by_task = {comparison.task: comparison for comparison in comparisons}
    directions = group_directions(by_task)
    if len(directions) != 1:
        directions[ALL] = list(by_task)
    return tuple(
        _average(place, ALL if len(directions) == 1 else direction, [by_task[task] for task in tasks])
        for place in range(len(comparisons[0].metrics))
        for direction, tasks in directions.items()
    )


def _average(place: int, direction: str, comparisons: Sequence[Comparison]) -> DirectionAverage:
    values: dict[str, list[float]] = {}
    for comparison in comparisons:
        for score in comparison.metrics[place].scores:
            values.setdefault(score.system, []).append(score.value)
    return DirectionAverage(
        metric=comparisons[0].metrics[place].metric,
        direction=direction,
        tasks=tuple(comparison.task for comparison in comparisons),
        values={name: float(np.mean(of_system)) for name, of_system in values.items()},
    )
