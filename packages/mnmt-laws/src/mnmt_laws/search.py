"""The nonlinear half of variable projection: a global search for one exponent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import elementwise

from mnmt_laws.linear import Design, project
from mnmt_laws.objective import Array, Objective

ALPHA_BOUNDS = (0.01, 4.0)
"""Range of every exponent α; a fit that ends at either end says so."""

_COARSE, _FINE = 48, 5
_TOLERANCES = {"xatol": 0.0, "xrtol": 1e-11, "fatol": 0.0, "frtol": 0.0}

Cost = Callable[[Array, NDArray[np.int64]], Array]


@dataclass(frozen=True, kw_only=True)
class PowerFit:
    """β at the pivot size, α and L∞ of one group structure, for every refit at once."""

    alpha: Array
    """(refits,)"""

    factors: Array
    """(refits, num_groups)"""

    limit: Array
    """(refits,)"""

    cost: Array
    """(refits,)"""

    converged: NDArray[np.bool_]
    """(refits,)"""


def fit_power_laws(design: Design, objective: Objective, observed: Array) -> PowerFit:
    """Fit metric = ±β_g (N/pivot)^-α + L∞ with α and L∞ shared by all groups g.

    A logarithmic grid over `ALPHA_BOUNDS` finds the basin, a finer one its bottom, and Chandrupatla's method
    the minimum to 1e-11; every step is deterministic.

    Args:
        design: Sizes and groups of the n observations.
        objective: What is minimised.
        observed: (refits, n) values; each row is a problem of its own.
    """

    def cost(alpha: Array, row: NDArray[np.int64]) -> Array:
        return project(design, objective, alpha, observed[row]).cost

    rows = np.arange(len(observed))
    alpha, converged = _minimise(cost, rows)
    best = project(design, objective, alpha, observed)
    return PowerFit(alpha=alpha, factors=best.factors, limit=best.limit, cost=best.cost, converged=converged)


def _minimise(cost: Cost, rows: NDArray[np.int64]) -> tuple[Array, NDArray[np.bool_]]:
    """(refits,) exponents of least cost, and whether each was found; an end of the range counts as found."""
    grid = np.broadcast_to(np.geomspace(*ALPHA_BOUNDS, _COARSE), (len(rows), _COARSE))
    low, middle, high = _bracket(cost, grid, rows)
    finer = [np.linspace(low, middle, _FINE, axis=1), np.linspace(middle, high, _FINE, axis=1)[:, 1:]]
    low, middle, high = _bracket(cost, np.concatenate(finer, axis=1), rows)
    alpha, converged = middle.copy(), np.isin(middle, grid[0, [0, -1]])
    inside = ~converged
    if inside.any():
        found = elementwise.find_minimum(  # type: ignore[call-overload]  # its stubs do not know of args
            cost, (low[inside], middle[inside], high[inside]), args=(rows[inside],), tolerances=_TOLERANCES
        )
        alpha[inside] = np.where(found.success, found.x, middle[inside])
        converged[inside] = found.success
    return alpha, converged


def _bracket(cost: Cost, grid: Array, rows: NDArray[np.int64]) -> tuple[Array, Array, Array]:
    """The best point of each row of `grid` (refits, points), between its neighbours."""
    best = cost(grid, np.broadcast_to(rows[:, None], grid.shape)).argmin(axis=1)
    last = grid.shape[1] - 1
    picks = (np.maximum(best - 1, 0), best, np.minimum(best + 1, last))
    low, middle, high = (np.take_along_axis(grid, pick[:, None], axis=1)[:, 0] for pick in picks)
    return low, middle, high
