"""Recommended weights."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_laws import (
    KnownLaw,
    LawFit,
    Observations,
    Perturbation,
    ResidualBootstrap,
    fit,
    observe,
    recommend,
    simulate,
)

SIZE = 5e5


def cost_of(fitted: LawFit, preference: dict[str, float], points: np.ndarray) -> np.ndarray:
    """The preference-weighted loss, straight from the law."""
    total = sum(preference.values())
    mixture = dict(zip(fitted.tasks, points.T, strict=True))
    return sum(
        preference[task] / total * fitted.predict(task=task, size=SIZE, mixture=mixture)
        for task in fitted.tasks
    )


@given(first=st.floats(0.05, 20))
def test_two_tasks_match_a_fine_grid(two_tasks: LawFit, first: float) -> None:
    preference = {"en-de": first, "en-zh": 1.0}
    grid = np.linspace(1e-3, 1 - 1e-3, 100_001)
    costs = cost_of(two_tasks, preference, np.stack([grid, 1 - grid], axis=1))
    advice = recommend(two_tasks, size=SIZE, preference=preference)
    assert advice.weights["en-de"] == pytest.approx(grid[costs.argmin()], abs=2e-5)
    mixture = np.array([list(advice.weights.values())])
    assert cost_of(two_tasks, preference, mixture)[0] <= costs.min() + 1e-14


def test_three_tasks_are_no_worse_than_any_random_mixture(three_tasks: LawFit) -> None:
    preference = {"en-de": 1.0, "en-fr": 3.0, "en-zh": 2.0}
    advice = recommend(three_tasks, size=SIZE, preference=preference)
    points = np.random.default_rng(0).dirichlet(np.ones(3), 20_000) * 0.997 + 0.001
    best = cost_of(three_tasks, preference, np.array([list(advice.weights.values())]))[0]
    assert best <= cost_of(three_tasks, preference, points).min()
    assert math.fsum(advice.weights.values()) == pytest.approx(1.0)


def test_scaling_all_preferences_changes_nothing(two_tasks: LawFit) -> None:
    one, two = (
        recommend(two_tasks, size=SIZE, preference={"en-de": 2 * scale, "en-zh": 3 * scale})
        for scale in (1.0, 7.0)
    )
    assert one.weights == pytest.approx(two.weights, abs=1e-9)
    assert one.preference == {"en-de": 0.4, "en-zh": 0.6}


def test_intervals_hold_the_recommendation_and_regret_is_no_gain(two_tasks: LawFit) -> None:
    advice = recommend(two_tasks, size=SIZE)
    for task, weight in advice.weights.items():
        low, high = advice.weight_intervals[task]
        assert low < weight < high
        low, high = advice.predicted_intervals[task]
        assert low < advice.predicted[task] < high
    assert advice.regret >= 0


def test_without_refits_the_spread_is_unknown(clean: Observations) -> None:
    bare = fit(clean, law="capacity", uncertainty=Perturbation(refits=0))
    advice = recommend(bare, size=SIZE)
    assert math.isnan(advice.regret)
    assert all(math.isnan(end) for end in advice.weight_intervals["en-de"])


def test_a_rising_metric_is_maximised(clean: Observations) -> None:
    frame = clean.frame.assign(metric="chrf", value=80 - 20 * clean.frame["value"])
    rising = fit(
        observe(frame, metric="chrf"), law="capacity", objective="ols", uncertainty=Perturbation(refits=0)
    )
    falling = fit(clean, law="capacity", objective="ols", uncertainty=Perturbation(refits=0))
    one, two = (recommend(fitted, size=SIZE).weights["en-de"] for fitted in (rising, falling))
    assert one == pytest.approx(two, abs=1e-4)


def test_leaving_what_was_observed_is_said(two_tasks: LawFit) -> None:
    advice = recommend(two_tasks, size=1e7, preference={"en-de": 100.0, "en-zh": 1.0})
    assert any("times the largest fitted" in line for line in advice.warnings)
    assert any("of en-zh lies outside those fitted (0.1 to 1)" in line for line in advice.warnings)
    assert any("below the smallest fitted (9456)" in line for line in recommend(two_tasks, size=10).warnings)


def test_the_least_weight_is_kept(two_tasks: LawFit) -> None:
    advice = recommend(two_tasks, size=SIZE, preference={"en-de": 1e6, "en-zh": 1.0}, least_weight=0.2)
    assert advice.weights["en-zh"] == pytest.approx(0.2, abs=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"preference": {"en-de": 1.0}}, "`preference` must give en-de, en-zh a number above 0 each"),
        ({"preference": {"en-de": 1.0, "en-zh": 0.0}}, "a number above 0 each"),
        ({"size": 0.0}, "`size` must be above 0 parameters, but is 0"),
        ({"least_weight": 0.5}, "`least_weight` must be above 0 and below 1/2, but is 0.5"),
    ],
)
def test_wrong_questions_are_refused(two_tasks: LawFit, change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        recommend(two_tasks, **({"size": SIZE} | change))  # type: ignore[arg-type]


def test_the_order_of_tasks_does_not_matter(clean: Observations) -> None:
    renamed = clean.frame.replace({"task": {"en-de": "z", "en-zh": "a"}}).drop(columns="mixture")
    swapped = replace(observe(renamed))
    one = fit(clean, law="capacity", uncertainty=Perturbation(refits=0))
    two = fit(swapped, law="capacity", uncertainty=Perturbation(refits=0))
    weights = recommend(two, size=SIZE).weights
    assert recommend(one, size=SIZE).weights["en-de"] == pytest.approx(weights["z"], abs=1e-6)


def test_data_that_leave_the_mixture_open_say_what_to_train(laws: dict[str, KnownLaw]) -> None:
    table = simulate(laws, sizes=(1e4, 2e4, 4e4), weights=(0.4, 0.5, 0.6), noise=0.1, seed=0)
    hopeless = fit(table, law="capacity", uncertainty=ResidualBootstrap(refits=40))
    advice = recommend(hopeless, size=1e6)
    assert not advice.determined
    assert advice.doubts
    if advice.next_runs is not None:
        assert len(advice.next_runs.runs) == 3
        assert (advice.next_runs.runs["share"] < 1).all()


def test_precise_data_determine_the_mixture(laws: dict[str, KnownLaw]) -> None:
    table = simulate(
        laws, sizes=np.geomspace(1e4, 1e8, 9), weights=(0.1, 0.3, 0.5, 0.7, 0.9, 1.0, 0.0), noise=1e-4, seed=1
    )
    precise = fit(table, law="capacity", uncertainty=ResidualBootstrap(refits=20))
    advice = recommend(precise, size=1e6)
    assert advice.doubts == ()
    assert advice.determined
    assert advice.next_runs is None


def test_without_refits_the_mixture_is_not_determined(exact: LawFit) -> None:
    advice = recommend(exact, size=SIZE)
    assert not advice.determined
    assert advice.next_runs is None
