"""Objectives: their values and limits."""

from __future__ import annotations

import numpy as np
import pytest

from mnmt_laws.solver.objective import OBJECTIVES, find_objective


@pytest.mark.parametrize(("name", "expected"), [("log-ols", 0.5 * np.log(2) ** 2), ("ols", 0.5)])
def test_what_each_objective_makes_of_a_prediction_twice_too_high(name: str, expected: float) -> None:
    objective = OBJECTIVES[name]
    residual = objective.residual(np.array([1.0]), np.array([2.0]))
    assert objective.cost(residual, np.array([3.0])) == pytest.approx(3 * expected, rel=1e-12)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_prediction_below_zero_has_a_finite_cost(name: str) -> None:
    objective = OBJECTIVES[name]
    residual = objective.residual(np.array([1.0]), np.array([-0.5]))
    assert np.isfinite(objective.cost(residual, np.ones(1)))
    assert np.isfinite(objective.slope(np.array([-0.5]))).all()


def test_what_is_no_objective_is_refused() -> None:
    with pytest.raises(ValueError, match="`objective` must be one of log-ols, ols, but is 'mse'"):
        find_objective("mse")
