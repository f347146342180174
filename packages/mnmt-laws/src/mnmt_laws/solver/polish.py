"""Refine an estimate to its last digits by scipy's optimisers, where a descent alone does not get there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import linprog, minimize

from mnmt_laws.arrays import Array
from mnmt_laws.solver.descent import Problem, project
from mnmt_laws.solver.design_matrix import DesignMatrix
from mnmt_laws.solver.objective import Objective

_ROUNDS = 60
_SCAN = np.geomspace(0.5, 2.0, 25)
_FOLLOWED = 4
_LINEAR_REACH = 10.0  # how much farther a programme may move what predictions are linear in


def polish(
    design: DesignMatrix, objective: Objective, problem: Problem, vector: Array, *, converged: bool
) -> tuple[Array, bool]:
    """Return the minimum near `vector` (P,) for one copy, and whether it is one.

    Least absolute deviations go through linear programmes, all else that has not converged through L-BFGS-B.
    """
    if objective.absolute:
        return _by_scan(design, objective, problem, vector)
    if objective.squared and converged:
        return vector, True
    return _by_quasi_newton(design, objective, problem, vector)


def _by_quasi_newton(
    design: DesignMatrix, objective: Objective, problem: Problem, vector: Array
) -> tuple[Array, bool]:
    scale = np.where(vector != 0, np.abs(vector), 1.0)
    before = _value(design, objective, problem, vector)
    unit = max(before, 1e-300)

    def cost(scaled: Array) -> tuple[float, Array]:
        predicted, jacobian = design.jacobian((scaled * scale)[None])
        residual = objective.residual(problem.values, predicted)
        pull = problem.importance * objective.reweighting(residual) * residual * objective.slope(predicted)
        value = objective.cost(residual, problem.importance)[0]
        return float(value) / unit, (jacobian[0].T @ pull[0]) * scale / unit

    bounds = np.stack([problem.lower[0] / scale, problem.upper[0] / scale], axis=1)
    result = minimize(  # type: ignore[call-overload]  # its stubs want one-dimensional arrays
        cost, vector / scale, jac=True, bounds=bounds, method="L-BFGS-B",
        options={"maxiter": 5000, "maxfun": 10000, "ftol": 1e-15, "gtol": 1e-12, "maxcor": 30},
    )  # fmt: skip
    end = np.clip(result.x * scale, problem.lower[0], problem.upper[0])
    better = _value(design, objective, problem, end) < before
    return (end if better else vector), True


def _by_scan(
    design: DesignMatrix, objective: Objective, problem: Problem, vector: Array
) -> tuple[Array, bool]:
    """Return the lowest of many minima at kinks, from values of the first exponent on either side."""
    best, converged = _by_linear_programmes(design, objective, problem, vector)
    ends = []
    for share in _SCAN:
        pinned = replace(problem, lower=problem.lower.copy(), upper=problem.upper.copy())
        place = float(np.clip(best[0] * share, problem.lower[0, 0], problem.upper[0, 0]))
        pinned.lower[0, 0] = pinned.upper[0, 0] = place
        start = np.concatenate([[place], best[1:]])
        start = project(design, objective, pinned, start[None], steps=20, cold=False)[0][0]
        end, _ = _by_linear_programmes(design, objective, pinned, start, rounds=6)
        ends.append(end)
    ends.sort(key=lambda end: _value(design, objective, problem, end))
    for end in ends[:_FOLLOWED]:
        candidate, is_minimum = _by_linear_programmes(design, objective, problem, end)
        if _value(design, objective, problem, candidate) < _value(design, objective, problem, best):
            best, converged = candidate, is_minimum
    return best, converged


def _by_linear_programmes(
    design: DesignMatrix, objective: Objective, problem: Problem, vector: Array, *, rounds: int = _ROUNDS
) -> tuple[Array, bool]:
    """Minimise Σ w |r + J step| again and again, within a box that grows on success and else shrinks."""
    place, value = vector, _value(design, objective, problem, vector)
    radius = 0.5
    for _ in range(rounds):
        step = _programme(design, objective, problem, place, radius)
        if step is None:
            return place, False
        candidate = np.clip(place + step, problem.lower[0], problem.upper[0])
        after = _value(design, objective, problem, candidate)
        if after < value:
            small = value - after <= 1e-14 * value
            place, value, radius = candidate, after, min(2 * radius, 1.0)
            if small:
                return place, True
        else:
            radius /= 4
        if radius < 1e-13:
            return place, True
    return place, False


def _programme(
    design: DesignMatrix, objective: Objective, problem: Problem, place: Array, radius: float
) -> Array | None:
    predicted, jacobian = design.jacobian(place[None])
    residual = objective.residual(problem.values, predicted)[0]
    slopes = jacobian[0] * objective.slope(predicted)[0][:, None]
    scale = np.maximum(np.abs(place), 1e-8)
    count, width = slopes.shape
    scaled = slopes * scale
    eye = np.eye(count)
    reach = np.where(np.arange(width) < design.num_nonlinear, radius, _LINEAR_REACH * radius)
    low = np.maximum(-reach, (problem.lower[0] - place) / scale)
    high = np.minimum(reach, (problem.upper[0] - place) / scale)
    box = list(zip(low, high, strict=True))
    solved = linprog(
        np.concatenate([np.zeros(width), problem.importance[0]]),
        A_ub=np.block([[scaled, -eye], [-scaled, -eye]]),
        b_ub=np.concatenate([-residual, residual]),
        bounds=[*box, *[(0, None)] * count],
        method="highs",
    )
    return None if solved.x is None else np.asarray(solved.x[:width] * scale)


def _value(design: DesignMatrix, objective: Objective, problem: Problem, vector: Array) -> float:
    residual = objective.residual(problem.values, design.predict(vector[None]))
    return float(objective.value(residual, problem.importance)[0])
