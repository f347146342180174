"""Projected gradients on the simplex, for many cost functions at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mnmt_laws.arrays import Array

_SHARES = np.array([4.0, 2.0, 1.0, 0.5, 0.25, 0.1, 0.03, 0.01, 1e-3, 1e-4])  # of a projected step
_STEP = 1e-5  # of a difference
_STILL = 1e-8  # movement at which a search ends


def descend(
    smooth: Callable[[Array], Array],
    start: Array,
    cost: Callable[[Array], Array],
    num_tasks: int,
    least: float,
    span: tuple[float, float] | None,
    *,
    rounds: int,
) -> Array:
    """Return points (count, K or K + 1) of less cost than `start`.

    Steps of Barzilai and Borwein (1988) along the gradient of `smooth`, projected onto the simplex, of which
    the best share is taken (Birgin et al. 2000). A point that is worse in `cost` itself is not returned.

    Args:
        smooth: Costs (count, n) of points (count, n, K or K + 1) with a gradient.
        start: (count, K or K + 1) points.
        cost: The costs that count.
        num_tasks: K, the number of weights.
        least: Smallest weight.
        span: Ends of the last coordinate, where it is no weight.
        rounds: The most steps.
    """
    points, values = start, smooth(start[:, None, :])[:, 0]
    slopes = _slopes(smooth, points, num_tasks)
    lengths = 0.1 / np.maximum(np.abs(slopes).max(axis=1), 1e-300)
    for _ in range(rounds):
        direction = _project(points - lengths[:, None] * slopes, num_tasks, least, span) - points
        trials = points[:, None, :] + _SHARES[:, None] * direction[:, None, :]
        trials = np.concatenate([_project(trials, num_tasks, least, span), points[:, None, :]], axis=1)
        costs = np.concatenate([smooth(trials[:, :-1]), values[:, None]], axis=1)
        index = np.nan_to_num(costs, nan=np.inf).argmin(axis=1)
        moved = np.take_along_axis(trials, index[:, None, None], axis=1)[:, 0] - points
        if np.abs(moved).max(initial=0.0) < _STILL:
            break
        points, values = points + moved, np.take_along_axis(costs, index[:, None], axis=1)[:, 0]
        new = _slopes(smooth, points, num_tasks)
        bend = np.sum(moved * (new - slopes), axis=1)
        square = np.sum(moved * moved, axis=1)
        lengths = np.where((bend > 0) & (square > 0), square / np.maximum(bend, 1e-300), 0.3 * lengths)
        slopes = new
    better = cost(points[:, None, :])[:, 0] < cost(start[:, None, :])[:, 0]
    return np.where(better[:, None], points, start)


def _slopes(smooth: Callable[[Array], Array], points: Array, num_tasks: int) -> Array:
    """Return the gradient, up to a constant over the weights, by differences that stay on the simplex."""
    weights = points[:, :num_tasks]
    moves = np.zeros((*weights.shape[:1], points.shape[1], points.shape[1]))
    moves[:, :num_tasks, :num_tasks] = np.eye(num_tasks) - weights[:, None, :]  # towards every corner
    if points.shape[1] > num_tasks:
        moves[:, -1, -1] = 1.0
    near = points[:, None, :] + _STEP * moves
    far = points[:, None, :] + 2 * _STEP * moves
    values = smooth(np.concatenate([points[:, None, :], near, far], axis=1))
    values = np.where(np.isfinite(values), values, 0.0)
    one, two = np.split(values[:, 1:], 2, axis=1)
    return np.asarray((4 * one - two - 3 * values[:, :1]) / (2 * _STEP))


def _project(points: Array, num_tasks: int, least: float, span: tuple[float, float] | None) -> Array:
    """Return the nearest points with weights of at least `least` that sum to 1."""
    excess, total = points[..., :num_tasks] - least, 1.0 - num_tasks * least
    ordered = -np.sort(-excess, axis=-1)
    surplus = (ordered.cumsum(axis=-1) - total) / np.arange(1, num_tasks + 1)
    last = np.sum(ordered > surplus, axis=-1, keepdims=True) - 1
    weights = least + np.maximum(excess - np.take_along_axis(surplus, last, axis=-1), 0.0)
    if span is None:
        return np.asarray(weights)
    return np.concatenate([weights, points[..., num_tasks:].clip(*span)], axis=-1)
