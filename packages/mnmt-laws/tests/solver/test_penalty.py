"""Penalties: their derivatives, and minima as scipy finds them with pseudo-residuals."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import least_squares

from mnmt_laws.arrays import Array
from mnmt_laws.laws import LAWS
from mnmt_laws.solver.design_matrix import DesignMatrix
from mnmt_laws.solver.objective import OBJECTIVES
from mnmt_laws.solver.penalty import Penalty
from mnmt_laws.solver.sample import Sample
from mnmt_laws.solver.search import find_minima

SIZES = np.array([1e4, 3e4, 1e5, 3e5])
PENALTY = Penalty(
    centre=np.array([[np.log(0.4), 0.0, 0.9]]),  # log α, β, L∞
    strength=np.array([0.002, 0.0, 0.003]),
    log=np.array([True, False, False]),
)


def power_law(rng: np.random.Generator) -> DesignMatrix:
    """The power law over four noisy losses."""
    values = (0.8 + 0.7 * (SIZES / 5e4) ** -0.5) * (1 + 0.02 * rng.standard_normal(4))
    sample = Sample(
        task="en-de", x={"size": SIZES, "weight": np.ones(4)}, weight=np.ones(4), values=values[None],
        importance=np.ones((1, 4)),
    )  # fmt: skip
    return DesignMatrix(LAWS["power"], sample)


def test_derivatives_agree_with_central_differences() -> None:
    near, step = np.array([[0.3, 2.0, 0.5]]), 1e-6 * np.eye(3)
    numeric = (PENALTY.value(near + step) - PENALTY.value(near - step)) / 2e-6
    np.testing.assert_allclose(PENALTY.derivatives(near)[0][0], numeric, rtol=1e-6, atol=1e-12)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=5)
def test_penalised_minima_are_those_of_least_squares_with_pseudo_residuals(seed: int) -> None:
    design = power_law(np.random.default_rng(seed))
    observed = design.sample.values[0]

    def residuals(vector: Array) -> Array:
        errors = np.log(design.predict(vector)) - np.log(observed)
        return np.append(errors, np.sqrt(PENALTY.strength) * (PENALTY.measured(vector) - PENALTY.centre[0]))

    low, high = (bound[0] for bound in design.bounds({}))
    found = find_minima(design.replace_penalty(PENALTY), OBJECTIVES["log-ols"])[0]
    oracle = least_squares(
        residuals, [0.5, 0.5, 0.5 * high[2]], bounds=(low, high), xtol=1e-14, ftol=1e-14, gtol=1e-14
    )
    assert found.converged
    assert found.cost <= oracle.cost * (1 + 1e-9)
    np.testing.assert_allclose(found.vector, oracle.x, rtol=1e-4)
