"""A law's own error beyond the data, by its back-tests: a level and a slope over log p of each task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mnmt_laws.arrays import Array
from mnmt_laws.fitting.back_test import BackTest
from mnmt_laws.fitting.evaluator import LEAST

UNTESTED = 1.0
"""Standard deviation of a law's own error beyond the data where no back-test tells of it, as a share of the
change that it predicts there: a gain that nobody has tested may not come at all."""

_SHARED = 0.5  # share of the variance that the tasks of a back-test have in common
_LEAST = 1e-3  # of a loss: a smaller reducible part counts as this
_SLOPE_NOISE = 0.3  # standard deviation of a slope over log p that scatter alone may give, in scatters


@dataclass(frozen=True, kw_only=True)
class OwnError:
    """The error of log-losses at the distance of one back-test."""

    axis: str
    """`size` or `tokens`."""

    edge: float
    """The largest size or longest training that the law was fitted to."""

    reach: float
    """Distance of the back-test, as the ratio of what was left out to what was fitted."""

    centre: Array
    """(tasks,) mean log p of the rows left out."""

    level: Array
    """(tasks,) signed root mean square of the error at the centre."""

    slope: Array
    """(tasks,) the same of its slope over log p."""

    def draw(self, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return (count, tasks) levels and slopes; tasks share half of their variance, in the signs seen."""
        levels, slopes = (self._numbers(count, rng) * size for size in (self.level, self.slope))
        return levels, slopes

    def _numbers(self, count: int, rng: np.random.Generator) -> Array:
        shared, separate = rng.standard_normal((count, 1)), rng.standard_normal((count, len(self.level)))
        return np.asarray(np.sqrt(_SHARED) * shared + np.sqrt(1 - _SHARED) * separate)

    def distance(self, value: Array) -> Array:
        """Return how far a value lies beyond the edge, in distances of the back-test; 0 within the data."""
        return np.asarray(np.maximum(np.log(value / self.edge), 0.0) / np.log(self.reach))

    def at(self, weights: Array) -> Array:
        """Return (..., tasks) log p of weights (..., tasks) less their centres."""
        return np.asarray(np.log(np.maximum(weights, LEAST)) - self.centre)


def own_error(
    test: BackTest, rows: pd.DataFrame, floors: Mapping[str, float], scatter: float, edge: float
) -> OwnError:
    """Return the part of a back-test's error that noise does not explain.

    Args:
        test: The back-test of a size or a length.
        rows: Those of its rows that are nearest to the target.
        floors: The known irreducible loss of each task, or 0; errors are of log(L - floor). A task without
            rows has the mean of the others.
        scatter: Standard deviation of log-losses about the law.
        edge: The largest value of the axis that the law is fitted to.
    """
    parts = [_level_and_slope(rows[rows["task"] == task], floor, scatter) for task, floor in floors.items()]
    table = np.array(parts)
    means = np.nanmean(table, axis=0)
    filled = np.where(np.isfinite(table), table, means)
    share = np.sqrt(test.beyond_noise)  # the draws of the parameters hold the rest
    return OwnError(
        axis=test.left_out, edge=edge, reach=test.reach,
        centre=filled[:, 0], level=share * filled[:, 1], slope=share * filled[:, 2],
    )  # fmt: skip


def log_errors(rows: pd.DataFrame, floor: float = 0.0) -> Array:
    """Return (n,) log(observed - floor) - log(predicted - floor) of a back-test's rows."""
    observed, predicted = (rows[name].to_numpy(float) - floor for name in ("observed", "predicted"))
    least = _LEAST * np.abs(rows["observed"].to_numpy(float))
    return np.asarray(np.log(np.maximum(observed, least)) - np.log(np.maximum(predicted, least)))


def _level_and_slope(rows: pd.DataFrame, floor: float, scatter: float) -> tuple[float, float, float]:
    """Return mean log p, and the signed sizes of a task's mean error and of its slope over log p."""
    if rows.empty:
        return np.nan, np.nan, np.nan
    x = np.log(np.maximum(rows["weight"].to_numpy(float), LEAST))
    errors = log_errors(rows, floor)
    mean, spread, centred = float(errors.mean()), float(errors.std()), x - x.mean()
    level = np.copysign(abs(mean) + spread / np.sqrt(len(errors)), mean)
    square = float(centred @ centred)
    slope = float(centred @ errors) / square if square > 0 else 0.0
    return float(x.mean()), float(level), float(np.copysign(abs(slope) + _SLOPE_NOISE * scatter, slope))
