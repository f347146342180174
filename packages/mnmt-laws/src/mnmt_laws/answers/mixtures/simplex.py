"""Points of the simplex of mixtures of K sources, and the minimum of a cost over them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from mnmt_laws.arrays import Array

Cost = Callable[[Array], Array]
"""Costs (count, n) of points (count or 1, n, K), or (…, K + 1) with a free number beside the weights."""

_MAX_POINTS = 2000  # points of a lattice
_LATTICE_TASKS = 4
_FINEST = 1e-9  # radius at which a search ends
_SAMPLED = 11  # base-two logarithm of the points in place of a lattice that would be too coarse
_FEW = 64  # first mixtures where each is combined with several numbers
_NUM_LEVELS = 45  # first values of the free number
_ROUNDS = 60  # of descent
_AFTER_DESCENT = 1e-3  # radius of the first neighbourhood after it
_SHARES = np.array([4.0, 2.0, 1.0, 0.5, 0.25, 0.1, 0.03, 0.01, 1e-3, 1e-4])  # multiples of a projected step
_STEP = 1e-5  # of a finite difference
_STILL = 1e-8  # movement at which a search ends


def simplex_points(num_tasks: int, least: float = 1e-3, *, most: int = _MAX_POINTS) -> Array:
    """Return (points, K) mixtures that cover the simplex evenly, with weights of at least `least`.

    They are a lattice of at most `most` points for up to four tasks. For more they are a quasi-random sample
    of the uniform distribution, the same in every call.
    """
    if num_tasks == 1:
        return np.ones((1, 1))
    if num_tasks <= _LATTICE_TASKS:
        raw = _lattice(num_tasks, most)
    else:
        power = min(_SAMPLED, max(0, math.ceil(math.log2(most))))
        uniform = qmc.Sobol(num_tasks, seed=0).random_base2(power)
        spread = -np.log(np.clip(uniform, 1e-12, 1.0))
        raw = spread / spread.sum(axis=1, keepdims=True)
    return least + raw * (1.0 - num_tasks * least)


def _lattice(num_tasks: int, most: int) -> Array:
    steps = 1
    while math.comb(steps + num_tasks, num_tasks - 1) <= most:
        steps += 1
    cuts = itertools.combinations(range(steps + num_tasks - 1), num_tasks - 1)
    table = np.array([(-1, *cut, steps + num_tasks - 1) for cut in cuts], dtype=float)
    return (np.diff(table, axis=1) - 1.0) / steps


def efficient(costs: Array) -> NDArray[np.bool_]:
    """Return (points,) whether no other point of (tasks, points) costs is better on every task (Pareto)."""
    flags = np.ones(costs.shape[1], dtype=bool)
    for point in range(costs.shape[1]):
        rival = costs <= costs[:, point : point + 1]
        better = (costs < costs[:, point : point + 1]).any(axis=0)
        flags[point] = not bool((rival.all(axis=0) & better).any())
    return flags


def minimise_on_simplex(
    cost: Cost,
    *,
    num_tasks: int,
    count: int,
    least: float = 1e-3,
    span: tuple[float, float] | None = None,
) -> tuple[Array, Array]:
    """Find the mixture of least cost, for many cost functions at once.

    The best point of an even spread is refined. For two sources ever finer grids are exact to about 1e-8, if
    the spread found the right valley. For more sources projected gradients follow, and ever smaller
    neighbourhoods after them, for costs with edges.

    Args:
        cost: Costs (count, n) of points (count or 1, n, K), or (…, K + 1) with `span`.
        num_tasks: K.
        count: Number of cost functions.
        least: Smallest weight of a source.
        span: Ends of a further free number, the last coordinate of every point.

    Returns:
        (count, K or K + 1) points and their (count,) costs.
    """
    points = _start(num_tasks, least, span)
    best = points[cost(points[None]).argmin(axis=1)]
    best = np.broadcast_to(best, (count, best.shape[1])).copy()
    radius, finest = 2.0 * _spacing(num_tasks, span), _FINEST
    if num_tasks > 2:
        best = descend(cost, best, num_tasks, least, span, rounds=_ROUNDS)
        radius, finest = _AFTER_DESCENT, 100 * _FINEST
    best = _refine(cost, best, radius, num_tasks, least, span, finest=finest)
    return best, np.broadcast_to(cost(best[:, None, :])[:, 0], (count,))


def _refine(
    cost: Cost,
    best: Array,
    radius: float,
    num_tasks: int,
    least: float,
    span: tuple[float, float] | None,
    *,
    finest: float,
) -> Array:
    """Return the best of ever smaller neighbourhoods of points."""
    offsets, shrink = _neighbourhood(num_tasks, span)
    while radius > finest and len(offsets) > 1:
        near = best[:, None, :] + radius * offsets
        near[..., :num_tasks] = _move_inside(near[..., :num_tasks], least)
        if span is not None:
            near[..., -1] = near[..., -1].clip(*span)
        trials = np.concatenate([best[:, None, :], near], axis=1)
        indices = cost(trials).argmin(axis=1)
        best = np.take_along_axis(trials, indices[:, None, None], axis=1)[:, 0]
        radius *= shrink
    return best


def _start(num_tasks: int, least: float, span: tuple[float, float] | None) -> Array:
    points = simplex_points(num_tasks, least, most=_FEW if span else _MAX_POINTS)
    if span is None:
        return points
    levels = np.linspace(*span, _NUM_LEVELS)
    repeated = np.repeat(points, len(levels), axis=0)
    return np.column_stack([repeated, np.tile(levels, len(points))])


def _spacing(num_tasks: int, span: tuple[float, float] | None) -> float:
    """Return the distance of neighbours in the first spread, as a share of the simplex's sides."""
    if num_tasks == 1:
        return 1.0 / _NUM_LEVELS
    apart = float((_FEW if span else _MAX_POINTS) ** (-1.0 / (num_tasks - 1)))
    return apart if span is None else max(apart, 1.0 / _NUM_LEVELS)


def _move_inside(points: Array, least: float) -> Array:
    """Move points of the plane Σ p = 1 onto the simplex of weights of at least `least`."""
    excess = np.maximum(points - least, 0.0)
    total = excess.sum(axis=-1, keepdims=True)
    return np.asarray(least + excess / total * (1.0 - points.shape[-1] * least))


def _neighbourhood(num_tasks: int, span: tuple[float, float] | None) -> tuple[Array, float]:
    """Return (points, K or K + 1) steps within a radius of one that keep the sum, and the next radius."""
    steps, shrink = _mixture_steps(num_tasks, coarse=span is not None)
    if span is None:
        return steps, shrink
    count = 41 if num_tasks == 1 else 21 if num_tasks == 2 else 5
    levels = np.linspace(-1.0, 1.0, count) * (span[1] - span[0])
    repeated = np.repeat(steps, len(levels), axis=0)
    return np.column_stack([repeated, np.tile(levels, len(steps))]), shrink


def _mixture_steps(num_tasks: int, *, coarse: bool) -> tuple[Array, float]:
    if num_tasks == 1:
        return np.zeros((1, 1)), 0.1
    if num_tasks == 2:
        steps = np.linspace(-1.0, 1.0, 21 if coarse else 41)
        return np.stack([steps, -steps], axis=1), 0.25 if coarse else 0.1
    moves = np.eye(num_tasks)[:, None, :] - np.eye(num_tasks)[None, :, :]
    pairs = moves[~np.eye(num_tasks, dtype=bool)]
    more = [_diagonal_moves(pairs)] if num_tasks <= _LATTICE_TASKS else []
    return np.concatenate([np.zeros((1, num_tasks)), pairs, 0.5 * pairs, 0.2 * pairs, *more]), 0.6


def _diagonal_moves(pairs: Array) -> Array:
    """Return the sums of two moves between sources, for diagonal valleys."""
    both = 0.5 * (pairs[:, None, :] + pairs[None, :, :]).reshape(-1, pairs.shape[1])
    steps = np.unique(both.round(9), axis=0)
    return np.asarray(steps[np.abs(steps).sum(axis=1) > 0])


def descend(
    cost: Cost,
    start: Array,
    num_tasks: int,
    least: float,
    span: tuple[float, float] | None,
    *,
    rounds: int,
) -> Array:
    """Return points (count, K or K + 1) of less cost than `start`.

    Take steps of Barzilai and Borwein (1988) along the gradient, projected onto the simplex, at the best of
    several lengths (Birgin et al. 2000).

    Args:
        cost: Costs (count, n) of points (count, n, K or K + 1).
        start: (count, K or K + 1) points.
        num_tasks: K, the number of weights.
        least: Smallest weight.
        span: Ends of the last coordinate, where it is no weight.
        rounds: Most steps.
    """
    points, values = start, cost(start[:, None, :])[:, 0]
    slopes = _slopes(cost, points, num_tasks)
    lengths = 0.1 / np.maximum(np.abs(slopes).max(axis=1), 1e-300)
    for _ in range(rounds):
        direction = _project(points - lengths[:, None] * slopes, num_tasks, least, span) - points
        trials = points[:, None, :] + _SHARES[:, None] * direction[:, None, :]
        trials = np.concatenate([_project(trials, num_tasks, least, span), points[:, None, :]], axis=1)
        costs = np.concatenate([cost(trials[:, :-1]), values[:, None]], axis=1)
        index = np.nan_to_num(costs, nan=np.inf).argmin(axis=1)
        moved = np.take_along_axis(trials, index[:, None, None], axis=1)[:, 0] - points
        if np.abs(moved).max(initial=0.0) < _STILL:
            break
        points, values = points + moved, np.take_along_axis(costs, index[:, None], axis=1)[:, 0]
        new = _slopes(cost, points, num_tasks)
        # Barzilai and Borwein: |Δp|² / Δp·Δg is one over the curvature along the last step.
        bend = np.sum(moved * (new - slopes), axis=1)
        square = np.sum(moved * moved, axis=1)
        lengths = np.where((bend > 0) & (square > 0), square / np.maximum(bend, 1e-300), 0.3 * lengths)
        slopes = new
    return points


def _slopes(cost: Cost, points: Array, num_tasks: int) -> Array:
    """Return the gradient, up to a constant over the weights, by differences that stay on the simplex."""
    weights = points[:, :num_tasks]
    moves = np.zeros((*weights.shape[:1], points.shape[1], points.shape[1]))
    moves[:, :num_tasks, :num_tasks] = np.eye(num_tasks) - weights[:, None, :]  # towards every corner
    if points.shape[1] > num_tasks:
        moves[:, -1, -1] = 1.0
    near = points[:, None, :] + _STEP * moves
    far = points[:, None, :] + 2 * _STEP * moves
    values = cost(np.concatenate([points[:, None, :], near, far], axis=1))
    values = np.where(np.isfinite(values), values, 0.0)
    one, two = np.split(values[:, 1:], 2, axis=1)  # f' ≈ (4 f(h) - f(2h) - 3 f(0)) / 2h, to order h²
    return np.asarray((4 * one - two - 3 * values[:, :1]) / (2 * _STEP))


def _project(points: Array, num_tasks: int, least: float, span: tuple[float, float] | None) -> Array:
    """Return the nearest points with weights of at least `least` that sum to 1."""
    excess, total = points[..., :num_tasks] - least, 1.0 - num_tasks * least
    # max(excess - τ, 0) with τ such that they sum to the total: τ follows from the k greatest (Held 1974).
    ordered = -np.sort(-excess, axis=-1)
    surplus = (ordered.cumsum(axis=-1) - total) / np.arange(1, num_tasks + 1)
    last = np.sum(ordered > surplus, axis=-1, keepdims=True) - 1
    weights = least + np.maximum(excess - np.take_along_axis(surplus, last, axis=-1), 0.0)
    if span is None:
        return np.asarray(weights)
    return np.concatenate([weights, points[..., num_tasks:].clip(*span)], axis=-1)
