"""Descend to the nearest minimum: Levenberg's and Marquardt's method with projected linear parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mnmt_laws.arrays import Array
from mnmt_laws.solver.bounded_quadratic import solve_box
from mnmt_laws.solver.design_matrix import Design
from mnmt_laws.solver.objective import Objective

SETTLED, NEARLY = 1e-13, 1e-9  # relative change of all predictions in a step at which a search has converged
_STUCK = 1e10  # damping at which no smaller step is tried
_GAIN = 1e-15  # relative fall of the objective that rounding hides


@dataclass(kw_only=True)
class Descent:
    """Where m searches ended."""

    vectors: Array
    """(m, P)"""

    cost: Array
    """(m,)"""

    converged: NDArray[np.bool_]
    """(m,)"""


@dataclass(frozen=True, kw_only=True)
class Target:
    """What m searches fit: values, their importance, and the bounds they keep to."""

    values: Array
    """(m, n)"""

    importance: Array
    """(m, n)"""

    lower: Array
    """(m, P)"""

    upper: Array
    """(m, P)"""

    def at(self, rows: NDArray[np.int64]) -> Target:
        """Some of the searches."""
        return Target(
            values=self.values[rows],
            importance=self.importance[rows],
            lower=self.lower[rows],
            upper=self.upper[rows],
        )


def project(
    design: Design, objective: Objective, target: Target, vectors: Array, *, steps: int, cold: bool
) -> tuple[Array, Array]:
    """The best linear parameters for the nonlinear ones that `vectors` hold.

    One step is exact where the objective is a sum of squares of differences; for others it is Newton's method
    or iterated reweighting.

    Args:
        design: The law over the observations.
        objective: What is minimised.
        target: What is fitted.
        vectors: (m, P) parameters, whose linear columns are replaced.
        steps: Least-squares problems to solve.
        cold: Whether the linear columns hold nothing to begin with.

    Returns:
        (m, P) parameters and their (m,) cost.
    """
    linear = slice(design.num_nonlinear, None)
    columns = design.linear_columns(vectors)
    low, high = target.lower[:, linear], target.upper[:, linear]
    found = np.clip(vectors[:, linear], low, high)
    if cold:
        relative = target.values**-2.0 if objective.log else 1.0
        found = _step(columns, target.importance * relative, target.values, low, high)
    cost = _cost(objective, target, columns, found)
    for _ in range(steps):
        predicted = np.einsum("mnk,mk->mn", columns, found)
        residual, slope = objective.residual(target.values, predicted), objective.slope(predicted)
        curvature = target.importance * objective.curvature(residual) * slope * slope
        pull = target.importance * objective.reweighting(residual) * residual * slope
        goal = predicted - np.divide(pull, curvature, out=np.zeros_like(pull), where=curvature > 0)
        tried = _step(columns, curvature, goal, low, high)
        after = _cost(objective, target, columns, tried)
        better = after < cost
        found, cost = np.where(better[:, None], tried, found), np.where(better, after, cost)
        if not better.any():
            break
    return np.concatenate([vectors[:, : design.num_nonlinear], found], axis=1), cost


def _step(columns: Array, weights: Array, goal: Array, low: Array, high: Array) -> Array:
    """Weighted least squares within bounds."""
    weighted = (columns * weights[..., None]).transpose(0, 2, 1)
    return solve_box(weighted @ columns, (weighted @ goal[..., None])[..., 0], low, high)


def _cost(objective: Objective, target: Target, columns: Array, found: Array) -> Array:
    residual = objective.residual(target.values, np.einsum("mnk,mk->mn", columns, found))
    return objective.cost(residual, target.importance)


def descend(
    design: Design,
    objective: Objective,
    target: Target,
    vectors: Array,
    *,
    most: int = 300,
    settled: float = SETTLED,
) -> Descent:
    """Descend from each of `vectors` (m, P) until no prediction changes by more than `settled` of itself.

    Each step solves, within the bounds, the least-squares problem that agrees with the objective at the
    present point, damped until it helps; then the linear parameters are projected again.
    """
    place = np.clip(vectors, target.lower, target.upper)
    predicted = design.predict(place)
    state = Descent(
        vectors=place,
        cost=objective.cost(objective.residual(target.values, predicted), target.importance),
        converged=np.zeros(len(place), dtype=bool),
    )
    damping = np.full(len(place), 1e-4)
    todo = np.arange(len(place))
    for _ in range(most):
        if not len(todo):
            break
        done = _advance(design, objective, target.at(todo), state, damping, todo, settled)
        state.converged[todo[done]] = True
        todo = todo[~done]
    return state


def _advance(
    design: Design,
    objective: Objective,
    target: Target,
    state: Descent,
    damping: Array,
    todo: NDArray[np.int64],
    settled: float,
) -> NDArray[np.bool_]:
    """One step of every search in `todo`; which of them have converged."""
    here, cost = state.vectors[todo], state.cost[todo]
    predicted, jacobian = design.jacobian(here)
    residual, slope = objective.residual(target.values, predicted), objective.slope(predicted)
    curvature = target.importance * objective.curvature(residual) * slope * slope
    weighted = (jacobian * curvature[..., None]).transpose(0, 2, 1)
    matrix = weighted @ jacobian
    pull = target.importance * objective.reweighting(residual) * residual * slope
    gradient = (jacobian.transpose(0, 2, 1) @ pull[..., None])[..., 0]
    diagonal = np.arange(design.width)
    matrix[:, diagonal, diagonal] *= 1.0 + damping[todo][:, None]
    step = solve_box(matrix, -gradient, target.lower - here, target.upper - here)
    there = np.clip(here + step, target.lower, target.upper)
    there, after = project(design, objective, target, there, steps=1, cold=False)
    better = after < cost - _GAIN * cost
    still = np.abs((jacobian @ step[..., None])[..., 0]) <= settled * np.abs(predicted)
    state.vectors[todo] = np.where((after <= cost)[:, None], there, here)
    state.cost[todo] = np.minimum(after, cost)
    damping[todo] = np.clip(np.where(better, damping[todo] / 10, damping[todo] * 10), 1e-12, 10 * _STUCK)
    return np.asarray(still.all(axis=1) | (damping[todo] >= _STUCK))
