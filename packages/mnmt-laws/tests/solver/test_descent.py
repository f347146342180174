"""Projection of the linear parameters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from mnmt_laws.laws import LAWS
from mnmt_laws.solver.descent import Problem, project
from mnmt_laws.solver.design_matrix import DesignMatrix
from mnmt_laws.solver.objective import OBJECTIVES
from mnmt_laws.solver.sample import Sample

MakeSample = Callable[..., Sample]


@given(seed=st.integers(0, 10**6), alpha=st.floats(0.05, 2.0))
def test_projection_is_bounded_linear_least_squares(
    seed: int, alpha: float, random_sample: MakeSample
) -> None:
    sample = random_sample(np.random.default_rng(seed))
    design = DesignMatrix(LAWS["joint"], sample)
    low, high = design.bounds({})
    problem = Problem(
        design=design, objective=OBJECTIVES["ols"], copy=np.zeros(1, dtype=np.intp), lower=low, upper=high
    )
    start = np.zeros((1, design.width))
    start[0, 0] = alpha
    found, cost = project(problem, start, steps=2, cold=True)
    root = np.sqrt(sample.importance[0])
    columns = (design.jacobian(found, linear=True)[1][0] * root).T
    goal = sample.values[0] * root
    theirs = lsq_linear(columns, goal, (low[0, 1:], high[0, 1:]), method="bvls", tol=1e-14)
    assert found[0, 0] == alpha
    np.testing.assert_allclose(found[0, 1:], theirs.x, rtol=1e-8, atol=1e-10)
    assert cost[0] == pytest.approx(theirs.cost, rel=1e-10)


@given(seed=st.integers(0, 10**6))
def test_projection_never_raises_the_cost(seed: int, random_sample: MakeSample) -> None:
    rng, objective = np.random.default_rng(seed), OBJECTIVES["log-ols"]
    sample = random_sample(rng)
    design = DesignMatrix(LAWS["joint"], sample)
    low, high = design.bounds({})
    problem = Problem(
        design=design, objective=objective, copy=np.zeros(1, dtype=np.intp), lower=low, upper=high
    )
    start = np.clip(rng.uniform(0.1, 2.0, (1, design.width)), low, high)
    before = objective.cost(objective.residual(sample.values, design.predict(start)), sample.importance)
    _, after = project(problem, start, steps=1)
    assert after[0] <= before[0]
