"""Mixtures of any number of tasks, the efficient ones, and the best one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_laws.answers.mixtures.simplex import efficient, minimise_on_simplex, simplex_points


@given(seed=st.integers(0, 10**6), tasks=st.integers(2, 4), points=st.integers(1, 40))
def test_efficient_points_are_those_that_nothing_dominates(seed: int, tasks: int, points: int) -> None:
    costs = np.random.default_rng(seed).integers(0, 6, (tasks, points)).astype(float)
    flags = efficient(costs)
    for one in range(points):
        dominated = any(
            all(costs[:, other] <= costs[:, one]) and any(costs[:, other] < costs[:, one])
            for other in range(points)
        )
        assert flags[one] == (not dominated)


@pytest.mark.parametrize("tasks", [2, 3, 4, 6])
def test_points_of_the_simplex_are_mixtures(tasks: int) -> None:
    points = simplex_points(tasks, 0.01)
    np.testing.assert_allclose(points.sum(axis=1), 1.0)
    assert points.min() >= 0.01 - 1e-12
    assert len(points) <= 2048
    np.testing.assert_array_equal(points, simplex_points(tasks, 0.01))


@given(seed=st.integers(0, 10**6), tasks=st.integers(2, 4))
def test_the_least_point_of_a_bowl_is_found(seed: int, tasks: int) -> None:
    rng = np.random.default_rng(seed)
    centre = rng.dirichlet(np.ones(tasks), 3) * (1 - tasks * 0.01) + 0.01
    best, cost = minimise_on_simplex(
        lambda points: ((points - centre[:, None, :]) ** 2).sum(axis=2), num_tasks=tasks, count=3
    )
    np.testing.assert_allclose(best, centre, atol=1e-6)
    assert cost.max() < 1e-11
