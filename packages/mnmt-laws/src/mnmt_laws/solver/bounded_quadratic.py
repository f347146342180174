"""Many small quadratic problems with bounds, solved at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mnmt_laws.arrays import Array

_RIDGE = 1e-15  # relative to the diagonal: keeps a singular problem solvable without moving a regular one
_CYCLE_RIDGE = 1e-11  # keeps rounding from deciding the signs of pulls in a singular problem
_MOST = 1000  # exchanges; only contrived problems need more

_RIDGE_OF_SINGULAR = 1e-9  # of the diagonal, which is 1


def solve_bounded(matrix: Array, vector: Array, lower: Array, upper: Array) -> Array:
    """Minimise ½ xᵀHx - gᵀx within lower ≤ x ≤ upper, for each of m problems.

    Block principal pivoting (Júdice and Pires 1994): put variables beyond a bound on it, release variables
    whose gradient points inwards, all at once, until nothing changes. If a problem cycles, exchange one
    variable at a time, the last; this ends for every positive definite H (Murty 1974).

    Args:
        matrix: H, (m, k, k) positive semi-definite.
        vector: g, (m, k).
        lower: (m, k), at most `upper`.
        upper: (m, k).

    Returns:
        x, (m, k).
    """
    # With y = x / s and s_k = 1 / √H_kk the diagonal of s H s is 1, so one ridge suits every problem.
    diagonal = np.einsum("mkk->mk", matrix)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    scaled = matrix * scale[:, :, None] * scale[:, None, :]
    np.einsum("mkk->mk", scaled)[...] += _RIDGE
    solution = _exchange(scaled, vector * scale, lower / scale, upper / scale)
    return np.clip(solution * scale, lower, upper)


def _exchange(matrix: Array, vector: Array, lower: Array, upper: Array) -> Array:
    # The minimum is where each variable is free with gradient 0, at its lower bound with gradient ≥ 0, or at
    # its upper bound with gradient ≤ 0 (Karush, Kuhn and Tucker). `place` is the guess at which of the three.
    pinned = lower == upper
    solution, place = np.zeros_like(vector), np.where(pinned, -1, 0)  # -1 and 1: at a bound
    active, patience = np.arange(len(vector)), 3 * vector.shape[1] + 6
    for turn in range(_MOST):
        h, g, low, high = matrix[active], vector[active], lower[active], upper[active]
        before = place[active]
        x = _solve_free(h, g, before != 0, np.where(before < 0, low, np.where(before > 0, high, 0.0)))
        pull = g - np.einsum("mij,mj->mi", h, x)  # minus the gradient: the way a variable would move
        below = (x < low) | ((before < 0) & (pull < 0)) | pinned[active]
        above = ((x > high) | ((before > 0) & (pull > 0))) & ~below
        after = above.astype(int) - below
        # Exchanging all at once is quick and can cycle. Exchanging only the last wrong variable visits no
        # guess twice where H is positive definite, as the ridge makes it.
        if turn == patience:
            matrix = matrix + _CYCLE_RIDGE * np.eye(vector.shape[1])
        if turn >= patience:
            after = _change_last(before, after)
        solution[active], place[active] = x, after
        active = active[(before != after).any(axis=1)]
        if not len(active):
            break
    return solution


def _change_last(before: NDArray[np.int64], after: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return `before` with only the last of the changes."""
    last = before.shape[1] - 1 - (before != after)[:, ::-1].argmax(axis=1)
    changed, rows = before.copy(), np.arange(len(before))
    changed[rows, last] = after[rows, last]
    return changed


def _solve_free(matrix: Array, vector: Array, fixed: NDArray[np.bool_], values: Array) -> Array:
    """Return the minimum with the `fixed` variables held at their values, which are 0 for the others."""
    right = np.where(fixed, values, vector - np.einsum("mij,mj->mi", matrix, values))
    left = matrix * ~(fixed[:, :, None] | fixed[:, None, :])
    np.einsum("mkk->mk", left)[...] += fixed
    try:
        return np.asarray(np.linalg.solve(left, right[..., None])[..., 0])
    except np.linalg.LinAlgError:  # an idle variable, or two that act alike
        np.einsum("mkk->mk", left)[...] += _RIDGE_OF_SINGULAR
        return np.asarray(np.linalg.solve(left, right[..., None])[..., 0])
