"""Points of the simplex: every way to share one mixture among K tasks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from mnmt_laws.arrays import Array

_MAX_POINTS = 2000  # points of a lattice
_LATTICE_TASKS = 4
_FINEST = 1e-9  # radius at which a search ends
_SAMPLED = 11  # base-two logarithm of the points where a lattice would be too coarse


def simplex_points(num_tasks: int, least: float = 1e-3) -> Array:
    """Return (points, K) mixtures that cover the simplex evenly, with weights of at least `least`.

    They are a lattice for up to four tasks, and for more a quasi-random sample of the uniform distribution,
    the same in every call.
    """
    if num_tasks <= _LATTICE_TASKS:
        raw = _lattice(num_tasks)
    else:
        uniform = qmc.Sobol(num_tasks, seed=0).random_base2(_SAMPLED)
        spread = -np.log(np.clip(uniform, 1e-12, 1.0))
        raw = spread / spread.sum(axis=1, keepdims=True)
    return least + raw * (1.0 - num_tasks * least)


def _lattice(num_tasks: int) -> Array:
    steps = 1
    while math.comb(steps + num_tasks, num_tasks - 1) <= _MAX_POINTS:
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
    cost: Callable[[Array], Array], *, num_tasks: int, count: int, least: float = 1e-3
) -> tuple[Array, Array]:
    """Find the mixture of least cost, for many cost functions at once.

    The best point of `simplex_points` is refined by ever smaller lattices around the best point so far. The
    answer is exact to about 1e-8 where the lattice found the right valley.

    Args:
        cost: Costs (count, points) of mixtures (count or 1, points, num_tasks).
        num_tasks: K.
        count: Number of cost functions.
        least: Smallest weight of a task.

    Returns:
        (count, num_tasks) mixtures and their (count,) costs.
    """
    points = simplex_points(num_tasks, least)
    best = points[cost(points[None]).argmin(axis=1)]
    offsets, shrink = _neighbourhood(num_tasks)
    radius = 2.0 * _spacing(points, num_tasks)
    while radius > _FINEST:
        near = best[:, None, :] + radius * offsets
        trials = np.concatenate([best[:, None, :], _move_inside(near, least)], axis=1)
        indices = cost(trials).argmin(axis=1)
        best = np.take_along_axis(trials, indices[:, None, None], axis=1)[:, 0]
        radius *= shrink
    costs = cost(best[:, None, :])
    return np.broadcast_to(best, (count, num_tasks)), np.broadcast_to(costs[:, 0], (count,))


def _move_inside(points: Array, least: float) -> Array:
    """Move points of the plane Σ p = 1 onto the simplex of weights of at least `least`."""
    excess = np.maximum(points - least, 0.0)
    total = excess.sum(axis=-1, keepdims=True)
    return np.asarray(least + excess / total * (1.0 - points.shape[-1] * least))


def _neighbourhood(num_tasks: int) -> tuple[Array, float]:
    """Return (points, K) steps within a radius of one that keep the sum, and the next radius."""
    if num_tasks == 2:
        steps = np.linspace(-1.0, 1.0, 41)
        return np.stack([steps, -steps], axis=1), 0.1
    moves = np.eye(num_tasks)[:, None, :] - np.eye(num_tasks)[None, :, :]
    pairs = moves[~np.eye(num_tasks, dtype=bool)]
    return np.concatenate([pairs, 0.5 * pairs, 0.2 * pairs, _diagonal_moves(pairs)]), 0.6


def _diagonal_moves(pairs: Array) -> Array:
    """Return the sums of two moves between tasks, for valleys that run aslant."""
    both = 0.5 * (pairs[:, None, :] + pairs[None, :, :]).reshape(-1, pairs.shape[1])
    steps = np.unique(both.round(9), axis=0)
    return np.asarray(steps[np.abs(steps).sum(axis=1) > 0])


def _spacing(points: Array, num_tasks: int) -> float:
    return float(len(points) ** (-1.0 / (num_tasks - 1)))
