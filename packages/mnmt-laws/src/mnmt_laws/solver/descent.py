"""Descend to the nearest minimum: Levenberg's and Marquardt's method with projected linear parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mnmt_laws.arrays import Array
from mnmt_laws.solver.bounded_quadratic import solve_bounded
from mnmt_laws.solver.design_matrix import DesignMatrix
from mnmt_laws.solver.objective import Objective

TOLERANCE, COARSE_TOLERANCE = 1e-13, 1e-9
"""Relative change of all predictions in a step at which a search has converged."""

_STUCK = 1e10  # damping at which no smaller step is tried
_GAIN = 1e-15  # relative fall of the objective that rounding hides


@dataclass(kw_only=True)
class Descent:
    """The ends of m searches."""

    vectors: Array
    """(m, P)"""

    cost: Array
    """(m,)"""

    converged: NDArray[np.bool_]
    """(m,)"""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """The data of m searches: values, their importance, and the bounds of the parameters."""

    values: Array
    """(m, n)"""

    importance: Array
    """(m, n)"""

    lower: Array
    """(m, P)"""

    upper: Array
    """(m, P)"""

    def at(self, rows: NDArray[np.int64]) -> Problem:
        """Return some of the searches."""
        return Problem(
            values=self.values[rows],
            importance=self.importance[rows],
            lower=self.lower[rows],
            upper=self.upper[rows],
        )


def project(
    design: DesignMatrix, objective: Objective, problem: Problem, vectors: Array, *, steps: int, cold: bool
) -> tuple[Array, Array]:
    """Return the best linear parameters for the nonlinear ones in `vectors`.

    One step is exact where the objective is a sum of squares of differences; for others it is Newton's method
    or iterated reweighting.

    Args:
        design: The law over the observations.
        objective: The function to minimise.
        problem: Values, importance and bounds.
        vectors: (m, P) parameters, whose linear columns are replaced.
        steps: Least-squares problems to solve.
        cold: Whether the linear columns hold nothing to begin with.

    Returns:
        (m, P) parameters and their (m,) cost.
    """
    linear = slice(design.num_nonlinear, None)
    columns = design.linear_columns(vectors)
    low, high = problem.lower[:, linear], problem.upper[:, linear]
    solution = np.clip(vectors[:, linear], low, high)
    if cold:
        relative = problem.values**-2.0 if objective.log else 1.0
        solution = _step(columns, problem.importance * relative, problem.values, low, high)
    cost = _cost(objective, problem, columns, solution)
    for _ in range(steps):
        predicted = np.einsum("mnk,mk->mn", columns, solution)
        residual, slope = objective.residual(problem.values, predicted), objective.slope(predicted)
        curvature = problem.importance * objective.curvature(residual) * slope * slope
        pull = problem.importance * objective.reweighting(residual) * residual * slope
        goal = predicted - np.divide(pull, curvature, out=np.zeros_like(pull), where=curvature > 0)
        candidate = _step(columns, curvature, goal, low, high)
        after = _cost(objective, problem, columns, candidate)
        better = after < cost
        solution, cost = np.where(better[:, None], candidate, solution), np.where(better, after, cost)
        if not better.any():
            break
    return np.concatenate([vectors[:, : design.num_nonlinear], solution], axis=1), cost


def _step(columns: Array, weights: Array, goal: Array, low: Array, high: Array) -> Array:
    """Solve weighted least squares within bounds."""
    weighted = (columns * weights[..., None]).transpose(0, 2, 1)
    return solve_bounded(weighted @ columns, (weighted @ goal[..., None])[..., 0], low, high)


def _cost(objective: Objective, problem: Problem, columns: Array, solution: Array) -> Array:
    residual = objective.residual(problem.values, np.einsum("mnk,mk->mn", columns, solution))
    return objective.cost(residual, problem.importance)


def descend(
    design: DesignMatrix,
    objective: Objective,
    problem: Problem,
    vectors: Array,
    *,
    max_steps: int = 300,
    tolerance: float = TOLERANCE,
) -> Descent:
    """Descend from each of `vectors` (m, P) until no prediction changes by more than `tolerance` of itself.

    Each step solves, within the bounds, the least-squares problem that agrees with the objective at the
    present point, damped until it helps; then the linear parameters are projected again.
    """
    place = np.clip(vectors, problem.lower, problem.upper)
    predicted = design.predict(place)
    state = Descent(
        vectors=place,
        cost=objective.cost(objective.residual(problem.values, predicted), problem.importance),
        converged=np.zeros(len(place), dtype=bool),
    )
    damping = np.full(len(place), 1e-4)
    active = np.arange(len(place))
    for _ in range(max_steps):
        if not len(active):
            break
        done = _advance(design, objective, problem.at(active), state, damping, active, tolerance)
        state.converged[active[done]] = True
        active = active[~done]
    return state


def _advance(
    design: DesignMatrix,
    objective: Objective,
    problem: Problem,
    state: Descent,
    damping: Array,
    active: NDArray[np.int64],
    tolerance: float,
) -> NDArray[np.bool_]:
    """Take one step of every search in `active`; return which of them have converged."""
    current, cost = state.vectors[active], state.cost[active]
    predicted, jacobian = design.jacobian(current)
    residual, slope = objective.residual(problem.values, predicted), objective.slope(predicted)
    curvature = problem.importance * objective.curvature(residual) * slope * slope
    weighted = (jacobian * curvature[..., None]).transpose(0, 2, 1)
    matrix = weighted @ jacobian
    pull = problem.importance * objective.reweighting(residual) * residual * slope
    gradient = (jacobian.transpose(0, 2, 1) @ pull[..., None])[..., 0]
    diagonal = np.arange(design.width)
    matrix[:, diagonal, diagonal] *= 1.0 + damping[active][:, None]
    step = solve_bounded(matrix, -gradient, problem.lower - current, problem.upper - current)
    candidate = np.clip(current + step, problem.lower, problem.upper)
    candidate, after = project(design, objective, problem, candidate, steps=1, cold=False)
    better = after < cost - _GAIN * cost
    still = np.abs((jacobian @ step[..., None])[..., 0]) <= tolerance * np.abs(predicted)
    state.vectors[active] = np.where((after <= cost)[:, None], candidate, current)
    state.cost[active] = np.minimum(after, cost)
    damping[active] = np.clip(
        np.where(better, damping[active] / 10, damping[active] * 10), 1e-12, 10 * _STUCK
    )
    return np.asarray(still.all(axis=1) | (damping[active] >= _STUCK))
