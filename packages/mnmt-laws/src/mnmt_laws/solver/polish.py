"""The last digits of an estimate, by scipy's optimisers.

Where the objective has kinks, or a descent crawled.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import linprog, minimize

from mnmt_laws.arrays import Array
from mnmt_laws.solver.descent import Target, project
from mnmt_laws.solver.design_matrix import Design
from mnmt_laws.solver.objective import Objective

_ROUNDS = 60
_SCAN = np.geomspace(0.5, 2.0, 25)
_FOLLOWED = 4
_LINEAR_REACH = 10.0  # how much farther a programme may move what predictions are linear in


def polish(
    design: Design, objective: Objective, target: Target, vector: Array, *, converged: bool
) -> tuple[Array, bool]:
    """The minimum near `vector` (P,) for one copy, and whether it is one.

    Least absolute deviations by successive linear programmes, anything else that has not settled by L-BFGS-B.
    """
    if objective.absolute:
        return _by_scan(design, objective, target, vector)
    if objective.squared and converged:
        return vector, True
    return _by_quasi_newton(design, objective, target, vector)


def _by_quasi_newton(
    design: Design, objective: Objective, target: Target, vector: Array
) -> tuple[Array, bool]:
    scale = np.where(vector != 0, np.abs(vector), 1.0)
    before = _value(design, objective, target, vector)
    unit = max(before, 1e-300)

    def cost(scaled: Array) -> tuple[float, Array]:
        predicted, jacobian = design.jacobian((scaled * scale)[None])
        residual = objective.residual(target.values, predicted)
        pull = target.importance * objective.reweighting(residual) * residual * objective.slope(predicted)
        value = objective.cost(residual, target.importance)[0]
        return float(value) / unit, (jacobian[0].T @ pull[0]) * scale / unit

    bounds = np.stack([target.lower[0] / scale, target.upper[0] / scale], axis=1)
    found = minimize(  # type: ignore[call-overload]  # its stubs want one-dimensional arrays
        cost, vector / scale, jac=True, bounds=bounds, method="L-BFGS-B",
        options={"maxiter": 5000, "maxfun": 10000, "ftol": 1e-15, "gtol": 1e-12, "maxcor": 30},
    )  # fmt: skip
    ended = np.clip(found.x * scale, target.lower[0], target.upper[0])
    better = _value(design, objective, target, ended) < before
    return (ended if better else vector), True


def _by_scan(design: Design, objective: Objective, target: Target, vector: Array) -> tuple[Array, bool]:
    """Kinks make many small minima.

    The lowest of those seen from values of the first exponent on either side.
    """
    best, converged = _by_linear_programmes(design, objective, target, vector)
    ends = []
    for share in _SCAN:
        held = replace(target, lower=target.lower.copy(), upper=target.upper.copy())
        place = float(np.clip(best[0] * share, target.lower[0, 0], target.upper[0, 0]))
        held.lower[0, 0] = held.upper[0, 0] = place
        start = np.concatenate([[place], best[1:]])
        start = project(design, objective, held, start[None], steps=20, cold=False)[0][0]
        end, _ = _by_linear_programmes(design, objective, held, start, rounds=6)
        ends.append(end)
    ends.sort(key=lambda end: _value(design, objective, target, end))
    for end in ends[:_FOLLOWED]:
        tried, settled = _by_linear_programmes(design, objective, target, end)
        if _value(design, objective, target, tried) < _value(design, objective, target, best):
            best, converged = tried, settled
    return best, converged


def _by_linear_programmes(
    design: Design, objective: Objective, target: Target, vector: Array, *, rounds: int = _ROUNDS
) -> tuple[Array, bool]:
    """Each programme minimises Σ w |r + J step| within a box that grows on success and shrinks on failure."""
    place, value = vector, _value(design, objective, target, vector)
    radius = 0.5
    for _ in range(rounds):
        step = _programme(design, objective, target, place, radius)
        if step is None:
            return place, False
        tried = np.clip(place + step, target.lower[0], target.upper[0])
        after = _value(design, objective, target, tried)
        if after < value:
            small = value - after <= 1e-14 * value
            place, value, radius = tried, after, min(2 * radius, 1.0)
            if small:
                return place, True
        else:
            radius /= 4
        if radius < 1e-13:
            return place, True
    return place, False


def _programme(
    design: Design, objective: Objective, target: Target, place: Array, radius: float
) -> Array | None:
    predicted, jacobian = design.jacobian(place[None])
    residual = objective.residual(target.values, predicted)[0]
    slopes = jacobian[0] * objective.slope(predicted)[0][:, None]
    scale = np.maximum(np.abs(place), 1e-8)
    count, width = slopes.shape
    scaled = slopes * scale
    eye = np.eye(count)
    reach = np.where(np.arange(width) < design.num_nonlinear, radius, _LINEAR_REACH * radius)
    low = np.maximum(-reach, (target.lower[0] - place) / scale)
    high = np.minimum(reach, (target.upper[0] - place) / scale)
    box = list(zip(low, high, strict=True))
    solved = linprog(
        np.concatenate([np.zeros(width), target.importance[0]]),
        A_ub=np.block([[scaled, -eye], [-scaled, -eye]]),
        b_ub=np.concatenate([-residual, residual]),
        bounds=[*box, *[(0, None)] * count],
        method="highs",
    )
    return None if solved.x is None else np.asarray(solved.x[:width] * scale)


def _value(design: Design, objective: Objective, target: Target, vector: Array) -> float:
    residual = objective.residual(target.values, design.predict(vector[None]))
    return float(objective.value(residual, target.importance)[0])
