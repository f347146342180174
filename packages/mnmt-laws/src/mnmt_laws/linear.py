"""The linear half of variable projection: given the exponent, the best factors and limit in closed form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mnmt_laws.objective import Array, Objective

_SETTLED = 1e-14  # relative change of the predictions below which Newton's method has converged
_HALVINGS = 12


@dataclass(frozen=True, kw_only=True)
class Design:
    """The observations of one shared exponent and limit, with a factor for each group of them.

    Arrays end in the observation axis; leading axes are independent problems (refits, trial exponents).
    """

    log_size: Array
    """(n,) logarithm of size over the pivot."""

    groups: NDArray[np.int64]
    """(n,) group of each observation, 0 up to `num_groups` - 1."""

    rising: bool = False
    """Whether the metric rises to its limit (chrF) rather than falls to it (loss)."""

    @property
    def membership(self) -> Array:
        """(n, num_groups) one where the observation belongs to the group."""
        return np.eye(int(self.groups.max()) + 1)[self.groups]

    def basis(self, alpha: Array) -> Array:
        """±(N/pivot)^-α in the shape of α with an axis of n sizes added; negative where the metric rises."""
        power = np.exp(-alpha[..., None] * self.log_size)
        return -power if self.rising else power

    def limit_bounds(self, observed: Array) -> tuple[Array, Array]:
        """Range of the limit: [0, min L], or [max, ∞) for a rising metric; shape observed.shape[:-1]."""
        if self.rising:
            return observed.max(axis=-1), np.full(observed.shape[:-1], np.inf)
        return np.zeros(observed.shape[:-1]), observed.min(axis=-1)


@dataclass(frozen=True, kw_only=True)
class Projection:
    """The best linear parameters for given exponents, and what they leave."""

    factors: Array
    """(..., num_groups) multiplicative factors at the pivot size, never negative."""

    limit: Array
    """(...) limit L∞, within its bounds."""

    cost: Array
    """(...) sum of squared residuals."""


def project(design: Design, objective: Objective, alpha: Array, observed: Array) -> Projection:
    """Minimise the objective over factors and limit, with the exponents held.

    For `ols` this is one closed-form solve; for `log-ols` it is Newton's method, each step the same solve.

    Args:
        design: What was observed where.
        objective: What is minimised.
        alpha: (...) exponents.
        observed: (..., n) metric values, broadcast against `alpha`.
    """
    basis = design.basis(alpha)
    bounds = design.limit_bounds(observed)
    factors, limit = _solve(design, basis, objective.start(observed), observed, bounds)
    predicted = _predict(design, basis, factors, limit)
    cost = _cost(objective, observed, predicted)
    for _ in range(objective.newton_steps):
        weights, targets = objective.quadratic_model(observed, predicted)
        step = _solve(design, basis, weights, targets, bounds)
        before = predicted
        factors, limit = _descend(design, objective, basis, observed, (factors, limit), step, cost)
        predicted = _predict(design, basis, factors, limit)
        cost = _cost(objective, observed, predicted)
        if np.all(np.abs(predicted - before) <= _SETTLED * np.abs(observed)):
            break
    return Projection(factors=factors, limit=limit, cost=cost)


def _descend(
    design: Design,
    objective: Objective,
    basis: Array,
    observed: Array,
    old: tuple[Array, Array],
    new: tuple[Array, Array],
    cost: Array,
) -> tuple[Array, Array]:
    """Go from `old` towards `new`, halving the step where the cost would rise: far from the data it may."""
    factors, limit = new
    for _ in range(_HALVINGS):
        worse = _cost(objective, observed, _predict(design, basis, factors, limit)) > cost
        if not worse.any():
            break
        factors = np.where(worse[..., None], (factors + old[0]) / 2, factors)
        limit = np.where(worse, (limit + old[1]) / 2, limit)
    return factors, limit


def _cost(objective: Objective, observed: Array, predicted: Array) -> Array:
    cost: Array = np.sum(objective.residuals(observed, predicted) ** 2, axis=-1)
    return cost


def _predict(design: Design, basis: Array, factors: Array, limit: Array) -> Array:
    return factors[..., design.groups] * basis + limit[..., None]


def _solve(
    design: Design, basis: Array, weights: Array, targets: Array, bounds: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Weighted least squares for the factors and the bounded limit.

    Eliminating the factors leaves a parabola in the limit, so its clipped vertex is the exact bounded
    solution; a limit below every observed loss makes each factor non-negative by itself.
    """
    membership = design.membership
    square = (weights * basis * basis) @ membership
    ones_on_basis = ((weights * basis) @ membership) / square
    targets_on_basis = ((weights * basis * targets) @ membership) / square
    remainder = 1.0 - ones_on_basis[..., design.groups] * basis
    curvature = np.sum(weights * remainder * remainder, axis=-1)
    vertex = np.sum(weights * remainder * targets, axis=-1) / curvature
    limit = np.clip(vertex, *bounds)
    factors = np.maximum(targets_on_basis - limit[..., None] * ones_on_basis, 0.0)
    return factors, limit
