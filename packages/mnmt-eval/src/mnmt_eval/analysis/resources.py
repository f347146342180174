"""Averages over language pairs with much, some and little training data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Resources:
    """Which tasks have much and little data; by default OPUS-100's groups (Zhang et al. 2022, table 3).

    Raises:
        ValueError: If a threshold is out of its range.
    """

    high: int = 900_000
    """Tasks with more training pairs than these are High."""

    low: int = 100_000
    """Tasks with fewer training pairs than these are Low; all others are Med."""

    def __post_init__(self) -> None:
        if self.low < 0:
            raise ValueError(f"`low` must be at least 0, but is {self.low}.")
        if self.high < self.low:
            raise ValueError(f"`high` must be at least `low` ({self.low}), but is {self.high}.")

    def group(self, pairs: int) -> str:
        """`High`, `Med` or `Low`, of a task with so many training pairs."""
        if pairs > self.high:
            return "High"
        return "Low" if pairs < self.low else "Med"


@dataclass(frozen=True, kw_only=True)
class ResourceScore:
    """The mean of a metric over the tasks of a group, each counting once."""

    group: str
    """`High`, `Med`, `Low` or `All`."""

    tasks: tuple[str, ...]
    value: float


def resource_scores(
    values: Mapping[str, float], pairs: Mapping[str, int], *, resources: Resources | None = None
) -> tuple[ResourceScore, ...]:
    """Means of a metric, or of differences of it, over tasks with much, some and little data, and over all.

    Args:
        values: {task: value}.
        pairs: {task: training pairs}; tasks that are not in it, such as zero-shot ones, are left out.
        resources: The thresholds; by default OPUS-100's.

    Returns:
        High, Med, Low, as far as they have tasks, and All; nothing if no task is left.
    """
    thresholds = resources or Resources()
    groups: dict[str, list[str]] = {"High": [], "Med": [], "Low": [], "All": []}
    for task in values:
        if task in pairs:
            groups[thresholds.group(pairs[task])].append(task)
            groups["All"].append(task)
    return tuple(
        ResourceScore(group=name, tasks=tuple(tasks), value=float(np.mean([values[task] for task in tasks])))
        for name, tasks in groups.items()
        if tasks
    )
