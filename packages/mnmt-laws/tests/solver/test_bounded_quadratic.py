"""Quadratic problems with bounds, against scipy and against every active set there is."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from mnmt_laws.arrays import Array
from mnmt_laws.solver.bounded_quadratic import solve_bounded

Problem = tuple[Array, Array, Array, Array]


def value(matrix: Array, vector: Array, x: Array) -> float:
    return float(0.5 * x @ matrix @ x - vector @ x)


def least_value(matrix: Array, vector: Array, lower: Array, upper: Array) -> float:
    """The least over all ways to put each variable at its lower bound, at its upper one, or between."""
    width, values = len(vector), []
    for places in itertools.product((-1, 0, 1), repeat=width):
        x = np.where(np.array(places) < 0, lower, upper)
        free = np.array(places) == 0
        if not np.isfinite(x[~free]).all():
            continue
        rest = vector[free] - matrix[np.ix_(free, ~free)] @ x[~free]
        x[free] = np.linalg.lstsq(matrix[np.ix_(free, free)], rest, rcond=1e-12)[0]
        slack = 1e-9 * np.maximum(1.0, np.abs(x))
        if ((x >= lower - slack) & (x <= upper + slack)).all():
            values.append(value(matrix, vector, np.clip(x, lower, upper)))
    return min(values)


def random_problem(rng: np.random.Generator, *, rank: int, width: int, decades: float = 0) -> Problem:
    """H = AᵀA of a given rank, columns some decades apart in scale; bounds cut off the free minimum."""
    columns = rng.standard_normal((rank, width)) * 10 ** rng.uniform(-decades / 2, decades / 2, width)
    goal = rng.standard_normal(rank)
    centre, reach = rng.standard_normal(width), rng.exponential(size=width)
    unit = 1 / np.linalg.norm(columns, axis=0)
    return columns.T @ columns, columns.T @ goal, (centre - reach) * unit, (centre + reach) * unit


def solve(problem: Problem) -> Array:
    return np.asarray(solve_bounded(*(part[None] for part in problem))[0])


def assert_least(problem: Problem) -> None:
    matrix, vector, lower, upper = problem
    x = solve(problem)
    assert ((lower <= x) & (x <= upper)).all()
    least = least_value(*problem)
    assert value(matrix, vector, x) <= least + 1e-9 * max(1.0, abs(least))


@given(seed=st.integers(0, 2**32 - 1), width=st.integers(1, 7), decades=st.floats(0, 8))
def test_regular_problems_agree_with_scipy(seed: int, width: int, decades: float) -> None:
    rng = np.random.default_rng(seed)
    scale = 10 ** rng.uniform(-decades / 2, decades / 2, width)
    columns, goal = rng.standard_normal((width + 6, width)), rng.standard_normal(width + 6)
    lower = rng.standard_normal(width)
    upper = lower + rng.exponential(size=width)
    theirs = lsq_linear(columns, goal, (lower, upper), method="bvls", tol=1e-14).x
    scaled = columns * scale
    ours = solve((scaled.T @ scaled, scaled.T @ goal, lower / scale, upper / scale)) * scale
    np.testing.assert_allclose(ours, theirs, atol=1e-9)


@given(seed=st.integers(0, 2**32 - 1), width=st.integers(1, 4), decades=st.floats(0, 6))
def test_no_active_set_is_better(seed: int, width: int, decades: float) -> None:
    assert_least(random_problem(np.random.default_rng(seed), rank=width + 2, width=width, decades=decades))


@given(seed=st.integers(0, 2**32 - 1), width=st.integers(2, 4), data=st.data())
def test_singular_problems_reach_the_least_value(seed: int, width: int, data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, width - 1))
    assert_least(random_problem(np.random.default_rng(seed), rank=rank, width=width))


@given(seed=st.integers(0, 2**32 - 1), width=st.integers(1, 4), pinned=st.integers(0, 15))
def test_pinned_variables_stay_and_the_rest_make_the_best_of_it(seed: int, width: int, pinned: int) -> None:
    matrix, vector, lower, upper = random_problem(np.random.default_rng(seed), rank=width + 1, width=width)
    held = np.array([bool(pinned >> place & 1) for place in range(width)])
    upper = np.where(held, lower, upper)
    assert_least((matrix, vector, lower, upper))
    np.testing.assert_array_equal(solve((matrix, vector, lower, upper))[held], lower[held])


@given(seed=st.integers(0, 2**32 - 1), width=st.integers(1, 4))
def test_bounds_may_be_infinite(seed: int, width: int) -> None:
    rng = np.random.default_rng(seed)
    matrix, vector, lower, _ = random_problem(rng, rank=width + 2, width=width)
    assert_least((matrix, vector, lower, np.full(width, np.inf)))
    free = solve((matrix, vector, np.full(width, -np.inf), np.full(width, np.inf)))
    np.testing.assert_allclose(matrix @ free, vector, atol=1e-9)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_what_pulls_outwards_ends_at_the_bound_exactly(sign: float) -> None:
    x = solve((np.eye(1), np.array([sign * 10.0]), np.array([-1.0]), np.array([0.3])))
    assert x[0] == (0.3 if sign > 0 else -1.0)
