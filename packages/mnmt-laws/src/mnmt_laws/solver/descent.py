"""Descend to the nearest minimum: Levenberg's and Marquardt's method with projected linear parameters."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mnmt_laws.arrays import Array
from mnmt_laws.solver.bounded_quadratic import solve_bounded
from mnmt_laws.solver.design_matrix import DesignMatrix
from mnmt_laws.solver.objective import Objective

_log = logging.getLogger(__name__)

TOLERANCE, COARSE_TOLERANCE = 1e-12, 1e-6
"""A search ends when a step promises a smaller fall of the objective, over one observation's part of it."""

STATIONARY = 1e-4
"""Above this promised fall an end is no minimum: a hundredth of a standard error is left to go."""

_ROUNDING = 1e-13  # relative change of predictions that rounding hides
_ROUNDING_OF_SUMS = 1e-15  # relative change of the objective that rounding hides
_STUCK = 1e10  # damping at which no smaller step is tried


@dataclass(frozen=True, kw_only=True)
class Problem:
    """m searches over the copies of a sample, with the bounds of their parameters."""

    design: DesignMatrix
    objective: Objective

    copy: NDArray[np.intp]
    """(m,) the copy of the sample that each search is for."""

    lower: Array
    """(m, P)"""

    upper: Array
    """(m, P)"""

    def at(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Problem:
        """Return some of the searches."""
        return replace(self, copy=self.copy[rows], lower=self.lower[rows], upper=self.upper[rows])

    def values(self, vectors: Array) -> Array:
        """Return the (m,) objective at (m, P) parameters."""
        total = np.zeros(len(vectors))
        for rows, part in self.design.chunks(len(vectors)):
            observed, importance = self.rows(rows)
            total += self.objective.cost(self.objective.residual(observed, part.predict(vectors)), importance)
        if self.design.penalty is not None:
            total += self.design.penalty.at(self.copy).value(vectors)
        return total

    def model(self, vectors: Array, *, linear: bool = False) -> Model:
        """Return the quadratic model of the objective at (m, P) parameters, or in the linear ones only."""
        start, objective = self.design.num_nonlinear if linear else 0, self.objective
        low, high = (bound[:, start:] - vectors[:, start:] for bound in (self.lower, self.upper))
        model = Model.empty(low, high)
        for rows, part in self.design.chunks(len(vectors)):
            observed, importance = self.rows(rows)
            predicted, jacobian = part.jacobian(vectors, linear=linear)
            residual, slope = objective.residual(observed, predicted), objective.slope(predicted)
            # gradient Σ w r r' J, and Gauss-Newton's matrix Σ w c r'² J Jᵀ
            curvature = importance * objective.curvature(residual) * slope * slope
            pull = importance * residual * slope
            model.cost += objective.cost(residual, importance)
            model.size += np.sum(curvature * predicted * predicted, axis=-1)
            model.gradient += (jacobian @ pull[..., None])[..., 0]
            model.matrix += (jacobian * curvature[..., None, :]) @ jacobian.swapaxes(-1, -2)
        if self.design.penalty is not None:
            penalty = self.design.penalty.at(self.copy)
            first, second = (values[:, start:] for values in penalty.derivatives(vectors))
            model.cost += penalty.value(vectors)
            model.gradient += first
            np.einsum("mkk->mk", model.matrix)[...] += second
        return model

    def rows(self, rows: slice) -> tuple[Array, Array]:
        """Return the (m, n) values and importance of some observations."""
        sample = self.design.sample
        return sample.values[:, rows][self.copy], sample.importance[:, rows][self.copy]


@dataclass(kw_only=True)
class Model:
    """m quadratic models of an objective in k parameters, within their bounds."""

    cost: Array
    """(m,)"""

    size: Array
    """(m,) twice the rise of the model if all predictions double."""

    gradient: Array
    """(m, k)"""

    matrix: Array
    """(m, k, k)"""

    low: Array
    """(m, k) the step to the lower bounds."""

    high: Array
    """(m, k)"""

    @classmethod
    def empty(cls, low: Array, high: Array) -> Model:
        """Return a model without observations, to add some to."""
        count, width = low.shape
        return cls(
            cost=np.zeros(count), size=np.zeros(count), gradient=np.zeros((count, width)),
            matrix=np.zeros((count, width, width)), low=low, high=high,
        )  # fmt: skip

    def step(self, damping: Array | float) -> tuple[Array, Array]:
        """Return the (m, k) step to the least value of the damped model, and the (m,) fall it promises."""
        # Marquardt's damping, (1 + λ) on the diagonal: the step does not depend on the units of parameters.
        matrix = self.matrix.copy()
        np.einsum("mkk->mk", matrix)[...] *= 1.0 + np.reshape(damping, (-1, 1))
        step = solve_bounded(matrix, -self.gradient, self.low, self.high)
        promise = -np.einsum("mk,mk->m", step, self.gradient + 0.5 * np.einsum("mij,mj->mi", matrix, step))
        return step, promise

    def put(self, rows: NDArray[np.intp] | NDArray[np.bool_], other: Model) -> None:
        """Replace the models in `rows` by others."""
        for name, values in vars(self).items():
            values[rows] = getattr(other, name)

    def at(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Model:
        """Return some of the models."""
        return Model(**{name: values[rows] for name, values in vars(self).items()})


@dataclass(frozen=True, kw_only=True)
class Descent:
    """The ends of m searches."""

    vectors: Array
    """(m, P)"""

    cost: Array
    """(m,)"""

    converged: NDArray[np.bool_]
    """(m,) whether the end is a minimum: no step within the bounds promises more than `STATIONARY`."""


def project(problem: Problem, vectors: Array, *, steps: int, cold: bool = False) -> tuple[Array, Array]:
    """Return the best linear parameters for the nonlinear ones in `vectors`.

    One step is exact where residuals are differences; for logarithms it is Newton's method.

    Args:
        problem: The searches.
        vectors: (m, P) parameters, whose linear columns are replaced.
        steps: Least-squares problems to solve.
        cold: Whether the linear columns have no starting values.

    Returns:
        (m, P) parameters and their (m,) cost.
    """
    linear = slice(problem.design.num_nonlinear, None)
    vectors = np.clip(vectors, problem.lower, problem.upper)
    if cold:
        vectors = vectors.copy()
        vectors[:, linear] += _relative(problem).model(vectors, linear=True).step(0.0)[0]
    model = problem.model(vectors, linear=True)
    for _ in range(steps):
        trial = vectors.copy()
        trial[:, linear] = np.clip(
            vectors[:, linear] + model.step(0.0)[0], problem.lower[:, linear], problem.upper[:, linear]
        )
        after = problem.model(trial, linear=True)
        better = after.cost < model.cost
        if not better.any():
            break
        vectors = np.where(better[:, None], trial, vectors)
        model.put(better, after.at(better))
    return vectors, model.cost


def _relative(problem: Problem) -> Problem:
    """Return the problem as least squares of differences, relative ones in place of logarithms."""
    if not problem.objective.log:
        return problem
    sample = problem.design.sample
    relative = replace(sample, importance=sample.importance / sample.values**2)
    squares = replace(problem.objective, log=False)
    return replace(problem, design=problem.design.replace_copies(relative), objective=squares)


def descend(
    problem: Problem, vectors: Array, *, max_steps: int = 300, tolerance: float = TOLERANCE
) -> Descent:
    """Descend from each of `vectors` (m, P) until a step promises a fall below the tolerance.

    Each step solves, within the bounds, the least-squares problem that agrees with the objective at the
    present point, damped until it helps; then the linear parameters are projected again.
    """
    state = _State(problem, np.clip(vectors, problem.lower, problem.upper))
    for _ in range(max_steps):
        if not len(state.active):
            break
        _log.info("%d of %d searches ended", len(vectors) - len(state.active), len(vectors))
        state.advance(tolerance)
    # Judge without damping, which makes any step small. Newton's step promises ½ gᵀH⁻¹g: cost / n times the
    # squared distance to the minimum in standard errors.
    model = state.model
    _, promise = model.step(0.0)
    left = promise > STATIONARY * model.cost / len(problem.design.groups)
    rounding = promise <= (1e3 * _ROUNDING) ** 2 * model.size
    return Descent(vectors=state.vectors, cost=model.cost, converged=~left | rounding)


class _State:
    """The current points of all searches, and the models there."""

    def __init__(self, problem: Problem, vectors: Array) -> None:
        self.problem, self.vectors = problem, vectors
        self.model = problem.model(vectors)
        self.damping = np.full(len(vectors), 1e-4)
        self.helped = np.ones(len(vectors), dtype=bool)
        self.active = np.arange(len(vectors))

    def advance(self, tolerance: float) -> None:
        """Take one step of every active search, and drop searches that have ended."""
        active = self.active
        problem, model, damping = self.problem.at(active), self.model.at(active), self.damping[active]
        step, promise = model.step(damping)
        least = max(tolerance / len(problem.design.groups), _ROUNDING_OF_SUMS)
        small = (promise <= least * model.cost) & (damping <= 1.0)  # much damped, any step promises little
        trial = np.clip(self.vectors[active] + step, problem.lower, problem.upper)
        trial = self._project(problem, trial)
        after = problem.model(trial)
        better = after.cost < model.cost
        self.vectors[active[better]], self.helped[active] = trial[better], better
        self.model.put(active[better], after.at(better))
        # Trust the model as far as it was right. After a fall near the promise, damp less: Gauss-Newton.
        # After a small fall or a rise, damp more, which turns the step towards the gradient and shortens it.
        gain = (model.cost - after.cost) / np.maximum(promise, 1e-300)
        change = np.select([gain > 0.75, gain > 0.25, better], [0.1, 1.0, 3.0], 10.0)
        self.damping[active] = np.clip(damping * change, 1e-12, 10 * _STUCK)
        # size is ΔᵀHΔ for predictions that double, so this step moves them by less than their last digits.
        done = small | (promise <= _ROUNDING**2 * model.size) | (self.damping[active] >= _STUCK)
        self.active = active[~done]

    def _project(self, problem: Problem, trial: Array) -> Array:
        """Set the linear parameters to their best values, in searches where the last step helped."""
        # Variable projection (Golub and Pereyra 1973): given α, the best β and L∞ solve a bounded
        # least-squares problem, so that the descent follows the valley instead of crossing it.
        rows = np.flatnonzero(self.helped[self.active])
        helped, linear = problem.at(rows), slice(problem.design.num_nonlinear, None)
        step, _ = helped.model(trial[rows], linear=True).step(0.0)
        trial[rows, linear] = np.clip(
            trial[rows, linear] + step, helped.lower[:, linear], helped.upper[:, linear]
        )
        return trial
