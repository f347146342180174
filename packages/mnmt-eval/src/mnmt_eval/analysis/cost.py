"""Quality against cost: the M4 table of the GShard slides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True)
class SystemCost:
    """A system's quality on each task, and its cost."""

    name: str
    values: Mapping[str, float]
    """{task: metric}."""
    cost: float
    """The cost in a unit that all systems share: training FLOPs, seconds, or weights."""


@dataclass(frozen=True, kw_only=True)
class QualityAtCost:
    """A row of the table."""

    name: str
    value: float
    """The mean of the metric over the tasks."""
    difference: float
    """The mean over the tasks of the metric less the baseline's; the slides' ΔBLEU."""
    cost: float
    efficient: bool
    """Whether no other system is at least as good and as cheap, and better in one of the two."""


def quality_at_cost(
    systems: Sequence[SystemCost], baselines: Mapping[str, float], *, higher_is_better: bool = True
) -> tuple[QualityAtCost, ...]:
    """Compute mean quality, mean gain over the tasks' baselines, and cost of each system.

    Args:
        systems: The systems.
        baselines: {task: metric of the baseline}; only these tasks count.
        higher_is_better: Whether better systems have higher values.

    Returns:
        A row per system, in their order.

    Raises:
        ValueError: If there is no baseline, or a system has no value of a baseline's task.
    """
    if not baselines:
        raise ValueError("`baselines` must have at least one task, but has none.")
    for system in systems:
        if missing := [task for task in baselines if task not in system.values]:
            raise ValueError(
                f"{system.name} must have a value of every baseline's task, but lacks {missing[0]}."
            )
    means = [float(np.mean([system.values[task] for task in baselines])) for system in systems]
    baseline = float(np.mean(list(baselines.values())))
    quality = means if higher_is_better else [-mean for mean in means]
    costs = [system.cost for system in systems]
    return tuple(
        QualityAtCost(
            name=system.name,
            value=mean,
            difference=mean - baseline,
            cost=system.cost,
            efficient=not _is_dominated(good, system.cost, quality, costs),
        )
        for system, mean, good in zip(systems, means, quality, strict=True)
    )


def _is_dominated(value: float, cost: float, values: Sequence[float], costs: Sequence[float]) -> bool:
    return any(
        other >= value and price <= cost and (other > value or price < cost)
        for other, price in zip(values, costs, strict=True)
    )
