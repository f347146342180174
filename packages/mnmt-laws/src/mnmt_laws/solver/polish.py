"""Refine an estimate to its last digits by scipy's optimisers, where a descent alone does not get there."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog, minimize
from scipy.sparse import csr_array, eye_array, hstack

from mnmt_laws.arrays import Array
from mnmt_laws.solver.descent import Problem, descend

_ROUNDS = 60
_LINEAR_REACH = 10.0  # how much farther a programme may move what predictions are linear in
_LONGEST = 5000  # observations for a linear programme
_TRIAL_RADIUS, _TRIAL_GAIN = 1e-3, 1e-7  # of all parameters, and of the objective: less is no descent


def polish(problem: Problem, vector: Array, *, converged: bool, max_steps: int) -> tuple[Array, bool]:
    """Return the minimum near `vector` (P,) for one search, and whether it is one.

    Least absolute deviations go through linear programmes, all else that has not converged through L-BFGS-B.
    """
    if problem.objective.absolute and len(problem.design.groups) <= _LONGEST:
        return _by_linear_programmes(problem, vector, min(_ROUNDS, max_steps))
    if problem.objective.squared and converged:
        return vector, True
    return _by_quasi_newton(problem, vector, max_steps)


def _by_quasi_newton(problem: Problem, vector: Array, max_steps: int) -> tuple[Array, bool]:
    # In units of the estimate and of its cost, so that L-BFGS-B's tolerances are relative.
    scale = np.where(vector != 0, np.abs(vector), 1.0)
    unit = max(float(problem.model(vector[None]).cost[0]), 1e-300)

    def cost(scaled: Array) -> tuple[float, Array]:
        model = problem.model((scaled * scale)[None])
        return float(model.cost[0]) / unit, model.gradient[0] * scale / unit

    bounds = np.stack([problem.lower[0] / scale, problem.upper[0] / scale], axis=1)
    result = minimize(  # type: ignore[call-overload]  # its stubs want one-dimensional arrays
        cost, vector / scale, jac=True, bounds=bounds, method="L-BFGS-B",
        options={"maxiter": 5 * max_steps, "ftol": 1e-15, "gtol": 1e-12, "maxcor": 30},
    )  # fmt: skip
    # Only the descent tells a minimum within the bounds from a stop, so both ends go through it.
    ends = descend(
        problem.at(np.zeros(2, dtype=np.intp)),
        np.stack([vector, result.x * scale]),
        max_steps=min(30, max_steps),
    )
    best = int(ends.cost.argmin())
    return ends.vectors[best], bool(ends.converged[best])


def _by_linear_programmes(problem: Problem, vector: Array, rounds: int) -> tuple[Array, bool]:
    """Minimise Σ w |r + J step| again and again, within a box that grows on success and else shrinks."""
    # Kinks: a minimum lies where as many residuals are 0 as there are parameters, and a programme ends there.
    place, value, radius = vector, float(problem.values(vector[None])[0]), 0.5
    for _ in range(rounds):
        step, _ = _programme(problem, place, radius)
        candidate = np.clip(place + step, problem.lower[0], problem.upper[0])
        after = float(problem.values(candidate[None])[0])
        small = abs(value - after) <= 1e-14 * value
        if after < value:
            place, value, radius = candidate, after, min(2 * radius, 1.0)
        else:
            radius /= 4
        if small or radius < 1e-13:
            break
    return place, value - _programme(problem, place, _TRIAL_RADIUS)[1] <= _TRIAL_GAIN * value


def _programme(problem: Problem, place: Array, radius: float) -> tuple[Array, float]:
    """Return the (P,) step to the least value of the linearised objective in a box, and that value."""
    observed, importance = problem.rows(slice(None))
    predicted, jacobian = problem.design.jacobian(place[None])
    residual = problem.objective.residual(observed, predicted)[0]
    scale = np.maximum(np.abs(place), 1e-8)
    slopes = (jacobian[0] * problem.objective.slope(predicted)).T * scale
    count, width = slopes.shape
    reach = np.where(np.arange(width) < problem.design.num_nonlinear, radius, _LINEAR_REACH * radius)
    low = np.maximum(-reach, (problem.lower[0] - place) / scale)
    high = np.minimum(reach, (problem.upper[0] - place) / scale)
    solved = linprog(  # type: ignore[call-overload]  # its stubs want dense arrays
        np.concatenate([np.zeros(width), importance[0], importance[0]]),
        A_eq=hstack([csr_array(slopes), eye_array(count), -eye_array(count)]),
        b_eq=-residual,
        bounds=[*zip(low, high, strict=True), *[(0, None)] * (2 * count)],
        method="highs",
    )
    if solved.x is None:
        return np.zeros(width), -np.inf
    return np.asarray(solved.x[:width] * scale), float(solved.fun)
