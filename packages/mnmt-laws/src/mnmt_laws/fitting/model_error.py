"""The law's own error beyond the data, from back-tests and the distance between a point and the rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from mnmt_laws.arrays import Array
from mnmt_laws.fitting.back_test import back_tests
from mnmt_laws.fitting.law_fit import LawFit

AXES = ("size", "tokens", "weight")
_DIRECTIONS = 1000  # distances fall short of the true ones by up to a few percent in three dimensions


def model_error(fit: LawFit, task: str, at: Mapping[str, Array]) -> Array:
    """Return (n,) the variance of the law's own error beyond the data, as a multiple of the noise's.

    With it, models deviate from the law by 1 + k d standard deviations of the noise: d is the distance beyond
    the rows of the task, in logarithms, and k the growth that back-tests show. Sizes, tokens and the task's
    weight are measured together, from the convex hull of the rows, so a corner that no row is near lies
    beyond them. An axis without a back-test takes the greatest growth of the others. The growth along
    compute holds beyond the greatest size × tokens, where it is the greater one.

    Args:
        fit: A fit.
        task: A fitted task.
        at: `size`, `tokens` and `weight` of the points; those that are missing count as within the data.
    """
    rows, rates = fit.rows[fit.rows["task"] == task], _rates(fit)
    axes = [axis for axis in AXES if axis in at and _is_known(fit, rows, axis)]
    shape = np.broadcast_shapes(*(np.shape(values) for values in at.values())) or (1,)
    if not axes or not any(rates.values()):
        return np.zeros(shape)
    scale = np.array([rates.get(axis, max(rates.values())) for axis in axes])
    points = np.stack([_log(np.broadcast_to(at[axis], shape), rows[axis]) for axis in axes], axis=-1)
    data = np.stack([_log(rows[axis].to_numpy(float), rows[axis]) for axis in axes], axis=-1)
    growth = distance_beyond(points * scale, data * scale)
    if "compute" in rates and {"size", "tokens"} <= set(axes):
        further = points[:, :2].sum(axis=1) - data[:, :2].sum(axis=1).max()
        growth = np.maximum(growth, rates["compute"] * further)
    return np.asarray((1.0 + growth) ** 2 - 1.0)


def _rates(fit: LawFit) -> dict[str, float]:
    """Return k of each back-test: (1 + k d)² is the mean squared error that it found, in variances."""
    return {
        str(test.left_out): (np.sqrt(1.0 + test.excess) - 1.0) / np.log(test.reach)
        for test in back_tests(fit)
    }


def _is_known(fit: LawFit, rows: pd.DataFrame, axis: str) -> bool:
    reads = fit.law.knows_mixture if axis == "weight" else axis in fit.law.predictors
    return reads and bool(np.isfinite(rows[axis]).all())


def _log(values: Array, fitted: pd.Series) -> Array:
    """Return logarithms; weights of 0 count as half the least that was fitted."""
    least = float(fitted[fitted > 0].min()) / 2
    return np.log(np.maximum(values, least))


def distance_beyond(points: Array, rows: Array) -> Array:
    """Return (n,) the distance of points (n, d) from the convex hull of rows (m, d), 0 within.

    The greatest, over directions, of how far a point lies beyond all rows in that direction.
    """
    directions = _directions(rows.shape[1])
    beyond = (points @ directions - (rows @ directions).max(axis=0)).max(axis=1)
    return np.asarray(np.maximum(beyond, 0.0))


def _directions(count: int) -> Array:
    """Return (d, directions) unit vectors, evenly spread, those along the axes among them."""
    axes = np.concatenate([np.eye(count), -np.eye(count)], axis=1)
    if count == 1:
        return axes
    turn = np.arange(_DIRECTIONS) + 0.5
    if count == 2:
        angle = 2 * np.pi * turn / _DIRECTIONS
        return np.concatenate([axes, np.stack([np.cos(angle), np.sin(angle)])], axis=1)
    height, angle = 1 - 2 * turn / _DIRECTIONS, np.pi * (1 + np.sqrt(5)) * turn  # Fibonacci's spiral
    radius = np.sqrt(1 - height**2)
    return np.concatenate([axes, np.stack([radius * np.cos(angle), radius * np.sin(angle), height])], axis=1)
