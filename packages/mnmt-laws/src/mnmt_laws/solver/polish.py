"""Refine an estimate to its last digits by scipy's L-BFGS-B, where a descent alone does not get there."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from mnmt_laws.arrays import Array
from mnmt_laws.solver.descent import Problem, descend


def polish(problem: Problem, vector: Array, *, max_steps: int) -> tuple[Array, bool]:
    """Return the minimum near `vector` (P,) for one search by L-BFGS-B, and whether it is one."""
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
