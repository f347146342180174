"""Frontiers of two tasks and more."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnmt_laws import (
    LawFit,
    Observations,
    Perturbation,
    TableError,
    TaskLaw,
    fit,
    frontier,
    observe,
    simulate,
)
from mnmt_laws.answers.simplex import efficient, minimise_on_simplex, simplex_points

SIZE = 5e5


def test_a_frontier_is_the_laws_predictions_with_their_spread(two_tasks: LawFit) -> None:
    found = frontier(two_tasks, size=SIZE)
    weight = found.weight.sel(task="en-de").to_numpy()
    np.testing.assert_allclose(
        found.value.sel(task="en-de"), two_tasks.predict(task="en-de", size=SIZE, weight=weight)
    )
    np.testing.assert_allclose(found.weight.sum("task"), 1.0)
    assert (found.lower < found.value).all()
    assert (found.value < found.upper).all()
    assert (weight.min(), weight.max()) == pytest.approx((0.1, 0.9))
    assert found.attrs == {"size": SIZE, "units": "nats per token", "long_name": "loss", "level": 0.95}


def test_where_a_task_gains_from_weight_every_point_of_two_tasks_is_efficient(two_tasks: LawFit) -> None:
    found = frontier(two_tasks, size=SIZE)
    assert (np.diff(found.value.sel(task="en-de")) < 0).all()
    assert (np.diff(found.value.sel(task="en-zh")) > 0).all()
    assert found.efficient.all()


def test_a_larger_model_is_better_on_every_task(three_tasks: LawFit) -> None:
    small, large = (frontier(three_tasks, size=size).value for size in (SIZE, 2 * SIZE))
    assert (large < small).all()


def test_three_tasks_are_spread_over_the_simplex(three_tasks: LawFit) -> None:
    found = frontier(three_tasks, size=SIZE)
    assert list(found.task.values) == ["en-de", "en-fr", "en-zh"]
    assert 500 < found.sizes["point"] <= 2000
    np.testing.assert_allclose(found.weight.sum("task"), 1.0)
    assert float(found.weight.min()) > 0


def test_given_mixtures_are_used(three_tasks: LawFit) -> None:
    mixtures = [[0.2, 0.3, 0.5], [0.6, 0.2, 0.2]]
    found = frontier(three_tasks, size=SIZE, weights=mixtures)
    np.testing.assert_array_equal(found.weight.T, mixtures)


def test_frontiers_refuse_what_they_cannot_show(two_tasks: LawFit, clean: Observations) -> None:
    with pytest.raises(ValueError, match="`size` must be above 0 parameters, but is -1"):
        frontier(two_tasks, size=-1)
    with pytest.raises(ValueError, match="`weights` must hold mixtures of 2 tasks that sum to 1"):
        frontier(two_tasks, size=SIZE, weights=[[0.5, 0.6]])
    joint = fit(clean, uncertainty=Perturbation(refits=0))
    with pytest.raises(ValueError, match="`fit` must be of a capacity law, but is of the joint law"):
        frontier(joint, size=SIZE)
    alone = observe(clean.frame[clean.frame["task"] == "en-de"].drop(columns="mixture"))
    single = fit(alone, law="capacity", uncertainty=Perturbation(refits=0))
    with pytest.raises(TableError, match="needs two tasks or more, but the table has en-de only"):
        frontier(single, size=SIZE)


@given(seed=st.integers(0, 10**6), tasks=st.integers(2, 4), points=st.integers(1, 40))
@settings(max_examples=40, deadline=None)
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
@settings(max_examples=20, deadline=None)
def test_the_least_point_of_a_bowl_is_found(seed: int, tasks: int) -> None:
    rng = np.random.default_rng(seed)
    centre = rng.dirichlet(np.ones(tasks), 3) * (1 - tasks * 0.01) + 0.01
    best, cost = minimise_on_simplex(
        lambda points: ((points - centre[:, None, :]) ** 2).sum(axis=2), num_tasks=tasks, count=3
    )
    np.testing.assert_allclose(best, centre, atol=1e-6)
    assert cost.max() < 1e-11


def test_simulated_tasks_may_be_any_number() -> None:
    law = TaskLaw(alpha=0.4, beta=100, l_inf=0.5)
    with pytest.raises(ValueError, match="`laws` must hold two tasks for `weights`, but holds 3"):
        simulate(dict.fromkeys("abc", law), sizes=[1e5], weights=[0.5])
