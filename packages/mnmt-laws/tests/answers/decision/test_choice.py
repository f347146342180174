"""The mixture of least mean cost over draws, its neighbours in cost and its rivals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnmt_laws.answers.decision import Choice, Limits, Want, choose

GRID = np.linspace(0.001, 0.999, 2001)
POINTS = np.stack([GRID, 1 - GRID], axis=1)
EQUAL = {"a": 0.5, "b": 0.5}
STEP = 1 / 200  # between the weights that are tried for a range


def decide(forecast: Any, want: Want, limits: Limits | None = None, **options: Any) -> Choice:
    """Choose with usual options."""
    usual: dict[str, Any] = {"amount": 0.05, "proportions": {}, "current": {}}
    return choose(forecast, want, limits or Limits(), **(usual | options))


def wanted(aim: Any = "mean", importance: dict[str, float] | None = None, **targets: float) -> Want:
    """A want of two tasks."""
    return Want(aim=aim, importance=importance or EQUAL, targets=targets)


def costs_by_hand(forecast: Any, want: Want, points: np.ndarray) -> np.ndarray:
    """(draws, n) costs, draw by draw and mixture by mixture."""
    tasks, costs = forecast.tasks, np.empty((len(forecast.scale), len(points)))
    losses = forecast.losses(points) * forecast.sign
    alone = forecast.losses(np.eye(len(tasks))) * forecast.sign
    for draw in range(len(costs)):
        for n in range(len(points)):
            by_task = dict(zip(tasks, losses[draw, :, n], strict=True))
            if want.aim == "mean":
                costs[draw, n] = sum(want.importance[task] * by_task[task] for task in tasks)
            elif want.aim == "worst":
                costs[draw, n] = max(by_task.values())
            else:
                costs[draw, n] = max(
                    (by_task[task] - alone[draw, place, place]) / abs(alone[draw, place, place])
                    for place, task in enumerate(tasks)
                )
    return costs


@given(
    scale=st.lists(st.floats(0.2, 5.0), min_size=2, max_size=4),
    importance=st.lists(st.floats(0.2, 5.0), min_size=4, max_size=4),
)
@settings(max_examples=8)
def test_the_optimum_of_inverse_weights_is_that_of_lagrange(
    draws_of: Callable[..., Any], scale: list[float], importance: list[float]
) -> None:
    """The least of Σ λ a / w has w in proportion to √(λ a)."""
    forecast = draws_of(scale, [1.0] * len(scale))
    factors = np.array(importance[: len(scale)]) / sum(importance[: len(scale)])
    want = Want(importance=dict(zip(forecast.tasks, factors, strict=True)))
    expected = np.sqrt(factors * scale) / np.sqrt(factors * scale).sum()
    weights = list(decide(forecast, want).weights.values())
    np.testing.assert_allclose(weights, expected, atol=2e-4)


@pytest.mark.parametrize("aim", ["mean", "worst", "relative"])
@pytest.mark.parametrize("rising", [False, True])
def test_no_mixture_of_a_grid_has_a_lower_mean_cost(
    draws_of: Callable[..., Any], aim: str, rising: bool
) -> None:
    forecast = draws_of([1.0, 4.0], [0.3, 0.6], count=30, scatter=0.1, rising=rising)
    want = wanted(aim)
    choice = decide(forecast, want)
    assert choice.rule == ""
    mean = costs_by_hand(forecast, want, POINTS).mean(axis=0)
    best = costs_by_hand(forecast, want, np.array([list(choice.weights.values())])).mean()
    assert best <= mean.min() + 1e-9
    assert best == pytest.approx(mean.min(), abs=1e-3)
    assert choice.weights["b"] > 0.5


def test_targets_cost_what_is_missed_and_then_what_the_others_lose(draws_of: Callable[..., Any]) -> None:
    """Task a should reach 1.5; b loses against its best among mixtures that reach it."""
    forecast = draws_of([1.0, 2.0], [0.5, 0.5], count=20, scatter=0.1)
    want = wanted("targets", a=1.5)
    losses = forecast.losses(POINTS)
    missed = np.maximum(losses[:, 0] - 1.5, 0.0)
    cost = np.empty_like(missed)
    for draw, row in enumerate(missed):
        reached = row <= row.min() + 1e-12
        least = losses[draw, 1, reached].min()
        cost[draw] = row + np.maximum(losses[draw, 1] - least, 0.0)
    choice = decide(forecast, want)
    near = np.abs(GRID - choice.weights["a"]).argmin()
    assert cost.mean(axis=0)[near] <= cost.mean(axis=0).min() + 0.01
    assert choice.weights["a"] < 0.6


@pytest.mark.parametrize("tasks", [2, 3, 4])
def test_ties_go_to_equal_weights(draws_of: Callable[..., Any], tasks: int) -> None:
    flat = draws_of([1.0] * tasks, [0.0] * tasks)
    choice = decide(flat, Want(importance=dict.fromkeys(flat.tasks, 1 / tasks)))
    assert choice.rule == "equal weights"
    assert list(choice.weights.values()) == pytest.approx([1 / tasks] * tasks)
    assert all(low < 0.01 and high > 0.98 for low, high in choice.ranges.values())
    assert choice.regret == 0.0


def test_a_gain_within_the_noise_of_the_draws_is_no_reason_to_leave_a_free_rule(
    draws_of: Callable[..., Any],
) -> None:
    unsure = draws_of([1.0, 1.01], [0.5, 0.5], count=10, scatter=0.4)
    choice = decide(unsure, wanted(), proportions={"a": 0.9, "b": 0.1})
    assert choice.rule == "equal weights"
    assert [rival.name for rival in choice.rivals] == ["the corpus' proportions"]
    sure = draws_of([1.0, 4.0], [0.5, 0.5], count=10, scatter=0.01)
    assert decide(sure, wanted()).rule == ""


def test_ranges_cost_at_most_the_amount_and_more_outside(draws_of: Callable[..., Any]) -> None:
    forecast, want = draws_of([1.0, 4.0], [0.5, 0.4], count=30, scatter=0.2), wanted()
    choice = decide(forecast, want, amount=0.03)

    def extra(weight: float) -> float:
        best = list(choice.weights.values())
        pair = costs_by_hand(forecast, want, np.array([[weight, 1 - weight], best])).mean(axis=0)
        return float(pair[0] - pair[1])

    low, high = choice.ranges["a"]
    assert low < choice.weights["a"] < high
    assert max(extra(low), extra(high)) <= 0.03 < min(extra(low - STEP), extra(high + STEP))
    assert choice.ranges["b"] == pytest.approx((1 - high, 1 - low), abs=STEP)


def test_rivals_lose_the_mean_over_draws_and_win_in_the_other_draws(draws_of: Callable[..., Any]) -> None:
    forecast = draws_of([1.0, 2.0], [0.5, 0.4], count=40, scatter=0.3)
    want = wanted(importance={"a": 0.25, "b": 0.75})
    current = {"a": 0.1, "b": 0.9}
    choice = decide(forecast, want, current=current, proportions={"a": 0.8, "b": 0.2})
    names = {"equal weights", "weights by importance", "the corpus' proportions", "the current mixture"}
    assert {rival.name for rival in choice.rivals} | ({choice.rule} - {""}) == names
    for rival in choice.rivals:
        points = np.array([list(rival.weights.values()), list(choice.weights.values())])
        loss = costs_by_hand(forecast, want, points) @ np.array([1.0, -1.0])
        assert rival.loss == pytest.approx(loss.mean())
        assert rival.chance == pytest.approx(np.mean(loss > 0))
        assert rival.interval == pytest.approx(tuple(np.quantile(loss, [0.025, 0.975], method="weibull")))


def test_regret_is_the_mean_of_what_each_draw_would_have_saved(draws_of: Callable[..., Any]) -> None:
    forecast, want = draws_of([1.0, 4.0], [0.5, 0.4], count=30, scatter=0.2), wanted()
    choice = decide(forecast, want)
    costs = costs_by_hand(forecast, want, POINTS)
    chosen = costs_by_hand(forecast, want, np.array([list(choice.weights.values())]))[:, 0]
    assert choice.regret == pytest.approx(np.mean(chosen - costs.min(axis=1)), abs=1e-4)


def test_a_cap_leaves_the_others_in_proportion_to_their_optimum(draws_of: Callable[..., Any]) -> None:
    forecast = draws_of([4.0, 1.0, 2.0], [1.0] * 3)
    want = Want(importance=dict.fromkeys("abc", 1 / 3))
    weights = decide(forecast, want, Limits(most={"a": 0.3})).weights
    assert weights["a"] == pytest.approx(0.3, abs=1e-4)
    assert weights["c"] / weights["b"] == pytest.approx(np.sqrt(2.0), abs=0.05)


def test_least_weights_are_kept(draws_of: Callable[..., Any]) -> None:
    forecast = draws_of([100.0, 0.1], [1.0, 1.0])
    assert decide(forecast, wanted(), Limits(least={"b": 0.2})).weights["b"] == pytest.approx(0.2, abs=1e-4)


def test_the_divergence_from_a_current_mixture_is_kept(draws_of: Callable[..., Any]) -> None:
    forecast, current = draws_of([1.0, 9.0], [1.0, 1.0]), {"a": 0.8, "b": 0.2}  # the optimum has a at 0.25
    weights = decide(forecast, wanted(), Limits(near=current, divergence=0.1), current=current).weights
    divergence = sum(weights[name] * np.log(weights[name] / current[name]) for name in current)
    assert divergence == pytest.approx(0.1, abs=1e-4)
    assert 0.25 < weights["a"] < 0.8


def test_a_free_rule_that_breaks_a_limit_is_not_taken(draws_of: Callable[..., Any]) -> None:
    flat = draws_of([1.0, 1.0], [0.0, 0.0])
    choice = decide(flat, wanted(), Limits(most={"a": 0.3}))
    assert choice.rule == ""
    assert choice.weights["a"] == pytest.approx(0.3, abs=1e-3)  # of those allowed, nearest to equal weights
    assert choice.ranges["a"][1] <= 0.3 + 1e-3
