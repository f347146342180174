"""A metric against cross-entropy: the line through the models, and how well it holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Interval:
    """Where a number lies in most bootstrap samples."""

    lower: float
    upper: float


@dataclass(frozen=True, kw_only=True)
class MetricLine:
    """The least-squares line metric = intercept + slope · loss."""

    slope: float
    """Points of the metric for each nat per token."""

    intercept: float
    correlation: float
    """Pearson's r."""

    slope_interval: Interval
    intercept_interval: Interval
    correlation_interval: Interval
    count: int
    """Models."""

    def value(self, loss: float) -> float:
        """The metric that the line gives at a loss."""
        return self.intercept + self.slope * loss


def metric_line(
    losses: Sequence[float],
    values: Sequence[float],
    *,
    level: float = 0.95,
    samples: int = 1000,
    seed: int = 12345,
) -> MetricLine:
    """Fit the line through (loss, metric) of several models, with bootstrap intervals over the models.

    Fernandes et al. 2023, sec. 3.5, find chrF and BLEURT almost linear in cross-entropy.

    Args:
        losses: Of each model, nats per token.
        values: The metric of each.
        level: Share of the bootstrap samples within the intervals.
        samples: How many; those with one loss alone have no line and are left out.
        seed: Of the bootstrap.

    Raises:
        ValueError: If there are fewer than three models, or they do not differ in loss or metric.
    """
    x, y = np.asarray(losses, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if x.shape != y.shape or x.size < 3:
        raise ValueError(
            f"a line needs loss and metric of three models or more, but has {x.size} and {y.size}."
        )
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        raise ValueError("a line needs models that differ in loss and in metric, but all are the same.")
    slope, intercept, correlation = _fit(x[None], y[None])
    drawn = np.random.default_rng(seed).integers(x.size, size=(samples, x.size))
    drawn = drawn[np.ptp(x[drawn], axis=1) > 0]
    refits = _fit(x[drawn], y[drawn])
    return MetricLine(
        slope=float(slope[0]),
        intercept=float(intercept[0]),
        correlation=float(correlation[0]),
        slope_interval=_interval(refits[0], level),
        intercept_interval=_interval(refits[1], level),
        correlation_interval=_interval(refits[2], level),
        count=x.size,
    )


def _fit(x: Array, y: Array) -> tuple[Array, Array, Array]:
    """Slope, intercept and correlation of each row of x and y, (samples, models)."""
    dx, dy = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    xx, xy, yy = (dx * dx).sum(axis=1), (dx * dy).sum(axis=1), (dy * dy).sum(axis=1)
    slope = xy / xx
    scale = np.sqrt(xx * yy)
    correlation = np.divide(xy, scale, out=np.full_like(xy, np.nan), where=scale > 0)
    return slope, y.mean(axis=1) - slope * x.mean(axis=1), correlation


def _interval(refits: Array, level: float) -> Interval:
    lower, upper = np.nanquantile(refits, [0.5 - level / 2, 0.5 + level / 2])
    return Interval(lower=float(lower), upper=float(upper))
