"""Many small quadratic problems with bounds, solved at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mnmt_laws.arrays import Array

_RIDGE = 1e-15  # relative to the diagonal: keeps a singular problem solvable without moving a regular one
_SWEEPS = 200


def solve_bounded(matrix: Array, vector: Array, lower: Array, upper: Array) -> Array:
    """Minimise ½ xᵀHx - gᵀx within lower ≤ x ≤ upper, for each of m problems.

    A primal-dual active set: variables beyond a bound are put on it, those whose gradient points inwards are
    released, until nothing changes; the rare problem that cycles is finished by coordinate descent.

    Args:
        matrix: H, (m, k, k) positive semi-definite.
        vector: g, (m, k).
        lower: (m, k), at most `upper`.
        upper: (m, k).

    Returns:
        x, (m, k).
    """
    scale = _scales(matrix)
    scaled = matrix * scale[:, :, None] * scale[:, None, :]
    diagonal = np.arange(matrix.shape[1])
    scaled[:, diagonal, diagonal] += _RIDGE
    low, high = lower / scale, upper / scale
    solution = _active_set(scaled, vector * scale, low, high)
    return np.clip(solution * scale, lower, upper)


def _scales(matrix: Array) -> Array:
    """Return the scales that make each diagonal one; one where it is zero."""
    diagonal = np.einsum("mkk->mk", matrix)
    positive = diagonal > 0
    return np.where(positive, 1.0 / np.sqrt(np.where(positive, diagonal, 1.0)), 1.0)


def _active_set(matrix: Array, vector: Array, lower: Array, upper: Array) -> Array:
    count, width = vector.shape
    pinned = lower == upper
    at_low, at_high = pinned.copy(), np.zeros_like(pinned)
    solution = np.zeros_like(vector)
    unfinished = np.arange(count)
    for _ in range(3 * width + 6):
        at_limit, limits = (at_low | at_high)[unfinished], np.where(at_high, upper, lower)[unfinished]
        x = _solve_free(matrix[unfinished], vector[unfinished], at_limit, limits)
        pull = vector[unfinished] - np.einsum("mij,mj->mi", matrix[unfinished], x)
        solution[unfinished] = x
        below = (x < lower[unfinished]) | (at_low[unfinished] & (pull < 0)) | pinned[unfinished]
        above = ((x > upper[unfinished]) | (at_high[unfinished] & (pull > 0))) & ~below
        changed = ((below != at_low[unfinished]) | (above != at_high[unfinished])).any(axis=1)
        at_low[unfinished], at_high[unfinished] = below, above
        unfinished = unfinished[changed]
        if not len(unfinished):
            return solution
    solution[unfinished] = _coordinate_descent(
        matrix[unfinished], vector[unfinished], lower[unfinished], upper[unfinished]
    )
    return solution


def _solve_free(matrix: Array, vector: Array, at_limit: NDArray[np.bool_], limits: Array) -> Array:
    """Return the minimum with some variables held at their limits."""
    if not at_limit.any():
        return np.asarray(np.linalg.solve(matrix, vector[..., None])[..., 0])
    fixed = np.where(at_limit, limits, 0.0)
    right = np.where(at_limit, fixed, vector - np.einsum("mij,mj->mi", matrix, fixed))
    free = ~at_limit
    left = matrix * (free[:, :, None] & free[:, None, :])
    diagonal = np.arange(matrix.shape[1])
    left[:, diagonal, diagonal] += at_limit
    return np.asarray(np.linalg.solve(left, right[..., None])[..., 0])


def _coordinate_descent(matrix: Array, vector: Array, lower: Array, upper: Array) -> Array:
    x = np.clip(np.zeros_like(vector), lower, upper)
    for _ in range(_SWEEPS):
        for k in range(vector.shape[1]):
            curvature = np.maximum(matrix[:, k, k], _RIDGE)
            rest = vector[:, k] - np.einsum("mj,mj->m", matrix[:, k], x)
            x[:, k] = np.clip(x[:, k] + rest / curvature, lower[:, k], upper[:, k])
    return x
