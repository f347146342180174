"""Objectives: their values, derivatives and limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_laws.solver.objective import OBJECTIVES, find_objective


@pytest.mark.parametrize("name", OBJECTIVES)
@given(residual=st.floats(-0.5, 0.5).filter(lambda r: abs(r) > 1e-5))
def test_reweighting_is_the_derivative_of_the_cost(name: str, residual: float) -> None:
    objective, one = OBJECTIVES[name], np.ones(1)
    step = 1e-6 * abs(residual)
    up, down = (objective.cost(np.array([residual + move]), one) for move in (step, -step))
    weight = objective.reweighting(np.array([residual]))[0]
    assert weight * residual == pytest.approx((up - down) / (2 * step), rel=1e-5)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("log-ols", 0.5 * np.log(2) ** 2),
        ("ols", 0.5),
        ("lad", np.log(2)),
        ("huber", 1e-3 * (np.log(2) - 5e-4)),
    ],
)
def test_what_each_objective_makes_of_a_prediction_twice_too_high(name: str, expected: float) -> None:
    objective = OBJECTIVES[name]
    residual = objective.residual(np.array([1.0]), np.array([2.0]))
    assert objective.value(residual, np.array([3.0])) == pytest.approx(3 * expected, rel=1e-12)


def test_huber_between_squares_and_absolute_values() -> None:
    residual, one = np.array([0.3]), np.ones(1)
    wide = find_objective("huber", delta=1.0).value(residual, one)
    assert wide == OBJECTIVES["log-ols"].value(residual, one)
    narrow = find_objective("huber", delta=1e-9).value(residual, one)
    assert narrow / 1e-9 == pytest.approx(OBJECTIVES["lad"].value(residual, one), rel=1e-8)


@pytest.mark.parametrize(
    ("name", "delta", "message"),
    [
        ("mse", None, "`objective` must be one of log-ols, ols, lad, huber, but is 'mse'"),
        ("huber", 0.0, "`delta` must be above 0 and goes with huber, but is 0.0 with huber"),
        ("lad", 0.1, "`delta` must be above 0 and goes with huber, but is 0.1 with lad"),
    ],
)
def test_what_is_no_objective_is_refused(name: str, delta: float | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        find_objective(name, delta=delta)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_prediction_below_zero_has_a_finite_cost(name: str) -> None:
    objective = OBJECTIVES[name]
    residual = objective.residual(np.array([1.0]), np.array([-0.5]))
    assert np.isfinite(objective.cost(residual, np.ones(1)))
    assert np.isfinite(objective.slope(np.array([-0.5]))).all()
