"""Size, length and mixture of a budget, and the least budget that meets targets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnmt_laws import (
    ArgumentError,
    LawFit,
    Perturbation,
    ResidualBootstrap,
    fit,
    frontier,
    meet_targets,
    recommend,
    smallest_budget,
    smallest_size,
)

SIZES, LENGTHS = np.geomspace(1e5, 1e8, 5), np.geomspace(1e7, 1e10, 5)
WEIGHTS = (0.25, 0.5, 0.75, 1.0)


def chinchilla(size: float, tokens: float) -> float:
    return 0.4 + 300 * size**-0.34 + 900 * tokens**-0.28


def two_task_loss(task: str, size: float, tokens: float, weight: float) -> float:
    """f̂(p) = p + 0.2 p^0.5 (1 - p) for a, and half the gain for b."""
    gain = 0.2 if task == "a" else 0.1
    share = weight + gain * weight**0.5 * (1 - weight)
    return 0.4 + 300 * (share * size) ** -0.34 + 900 * (weight * tokens) ** -0.28


@pytest.fixture(scope="module")
def alone() -> LawFit:
    """Chinchilla's law of one task, without noise."""
    rows = [
        {"task": "a", "size": size, "tokens": tokens, "metric": "loss", "value": chinchilla(size, tokens)}
        for size in SIZES
        for tokens in LENGTHS
    ]
    return fit(pd.DataFrame(rows), law="chinchilla", uncertainty=Perturbation(refits=0))


@pytest.fixture(scope="module")
def mixed() -> LawFit:
    """The law of size, length and mixture of two tasks, with 0.2% noise."""
    rng = np.random.default_rng(4)
    rows = [
        {
            "task": task, "size": size, "tokens": tokens, "weight": weight, "metric": "loss",
            "mixture": f"a:{weight},b:{1 - weight}" if task == "a" else f"a:{1 - weight},b:{weight}",
            "value": two_task_loss(task, size, tokens, weight) * (1 + 0.002 * rng.standard_normal()),
        }
        for size in SIZES
        for tokens in LENGTHS
        for weight in WEIGHTS
        for task in "ab"
    ]  # fmt: skip
    return fit(pd.DataFrame(rows), law="length", uncertainty=ResidualBootstrap(refits=20))


def loss_of(fitted: LawFit, size: np.ndarray, tokens: np.ndarray, first: np.ndarray) -> np.ndarray:
    return sum(
        0.5 * fitted.predict(task=task, size=size, tokens=tokens, weight=weight)
        for task, weight in (("a", first), ("b", 1 - first))
    )


@given(budget=st.floats(1e15, 1e21))
@settings(max_examples=8)
def test_the_best_size_of_one_task_is_chinchillas(alone: LawFit, budget: float) -> None:
    """N* = G (C / 6)^(β / (α + β)), G = (α A / (β B))^(1 / (α + β)) (Hoffmann et al. 2022, eq. 4)."""
    p = {name: float(alone.parameters[name].sel(task="a")) for name in ("alpha", "beta", "a", "b")}
    scale = (p["alpha"] * p["a"] / (p["beta"] * p["b"])) ** (1 / (p["alpha"] + p["beta"]))
    size = scale * (budget / 6) ** (p["beta"] / (p["alpha"] + p["beta"]))
    advice = recommend(alone, budget=budget)
    assert advice.size == pytest.approx(size, rel=1e-5)
    assert advice.tokens == pytest.approx(budget / 6 / size, rel=1e-5)
    assert advice.weights == {"a": 1.0}
    least = smallest_budget(alone, targets=advice.predicted)
    assert least.budget == pytest.approx(budget, rel=1e-5)


def test_no_model_of_a_fine_grid_beats_a_budgets_best(mixed: LawFit) -> None:
    budget = 1e17
    advice = recommend(mixed, budget=budget)
    size, first = np.meshgrid(np.geomspace(1e4, 1e10, 601), np.linspace(0.001, 0.999, 401))
    losses = loss_of(mixed, size.ravel(), budget / 6 / size.ravel(), first.ravel())
    weighted = sum(advice.preference[task] * value for task, value in advice.predicted.items())
    assert weighted <= losses.min() + 1e-12
    assert weighted == pytest.approx(losses.min(), abs=1e-4)
    assert 6 * advice.size * advice.tokens == pytest.approx(budget)
    assert advice.size_interval[0] < advice.size < advice.size_interval[1]
    assert advice.tokens_interval[0] < advice.tokens < advice.tokens_interval[1]


def test_a_budget_and_a_size_leave_the_length(mixed: LawFit) -> None:
    given_size = recommend(mixed, budget=6e16, size=1e7)
    given_both = recommend(mixed, size=1e7, tokens=1e9)
    assert given_size.tokens == pytest.approx(1e9)
    assert given_size.weights == pytest.approx(given_both.weights)
    assert recommend(mixed, budget=6e16, tokens=1e9).size == pytest.approx(1e7)


@given(factor=st.floats(0.01, 100))
@settings(max_examples=3)
def test_scaling_a_preference_changes_no_model(mixed: LawFit, factor: float) -> None:
    one, two = (
        recommend(mixed, budget=1e17, preference={"a": 2 * scale, "b": scale}) for scale in (1.0, factor)
    )
    assert one.size == pytest.approx(two.size, rel=1e-6)
    assert one.weights == pytest.approx(two.weights, abs=1e-7)


def test_the_least_budget_is_what_the_smallest_size_costs_at_its_length(mixed: LawFit) -> None:
    targets = {"a": 2.5, "b": 2.6}
    least = smallest_budget(mixed, targets=targets)
    lengths = least.tokens * np.geomspace(0.5, 2, 7)
    bare = replace(mixed, draws=mixed.draws.isel(draw=slice(0, 0)))
    costs = [6 * smallest_size(bare, tokens=tokens, targets=targets).size * tokens for tokens in lengths]
    assert least.budget == pytest.approx(min(costs), rel=1e-4)
    assert least.budget <= min(costs) * (1 + 1e-6)
    assert least.interval[0] < least.budget < least.interval[1]
    at_it = meet_targets(mixed, size=least.size * 1.001, tokens=least.tokens, targets=targets)
    assert at_it.feasible


def test_targets_below_the_limit_need_no_finite_budget(mixed: LawFit) -> None:
    least = smallest_budget(mixed, targets={"a": 0.1})
    assert least.budget == float("inf")
    assert "L∞ of a" in least.reason
    too_short = smallest_size(mixed, tokens=1e3, targets={"a": 1.0})
    assert too_short.size == float("inf")
    assert too_short.reason == "infeasible: no size brings a to the target at 1e+03 tokens"


def test_a_frontier_at_a_length_is_the_laws_predictions(mixed: LawFit) -> None:
    points = frontier(mixed, size=1e7, tokens=1e9, weights=[0.3, 0.6])
    expected = mixed.predict(task="a", size=1e7, tokens=1e9, weight=np.array([0.3, 0.6]))
    np.testing.assert_allclose(points.value.sel(task="a"), expected)
    assert points.attrs["tokens"] == 1e9


def test_extrapolation_in_length_is_said(mixed: LawFit) -> None:
    lines = recommend(mixed, size=1e7, tokens=1e12).warnings
    assert any("the training length is 100.0 times the longest fitted" in line for line in lines)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 1e7}, "`tokens` must be given: the length law predicts from it"),
        ({"tokens": 1e7}, "`size` must be given"),
        ({"budget": float("inf")}, "`budget` must be a finite number above 0 FLOPs, but is inf"),
        ({"budget": 1.0}, "`budget` must pay for a run, but 1 FLOPs pay for none"),
        ({"size": float("inf"), "tokens": 1e9}, "`size` must be a finite number above 0 parameters"),
        ({"size": 1e7, "tokens": 1e9, "preference": {"A": 1, "b": 1}}, "names A"),
    ],
)
def test_wrong_questions_are_refused_in_a_sentence(
    mixed: LawFit, arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        recommend(mixed, **arguments)  # type: ignore[arg-type]


def test_laws_without_length_take_no_budget(two_tasks: LawFit) -> None:
    with pytest.raises(ArgumentError, match="`budget` needs a law of size and training length"):
        recommend(two_tasks, budget=1e17)
    with pytest.raises(ArgumentError, match="`tokens` must be left out"):
        recommend(two_tasks, size=1e5, tokens=1e7)
    with pytest.raises(TypeError, match="`size` must be a number of parameters, but is 'big'"):
        recommend(two_tasks, size="big")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="`level` must be above 0 and below 1"):
        frontier(two_tasks, size=1e5, level=2)


def test_the_smallest_budget_needs_a_law_of_length(exact: LawFit) -> None:
    with pytest.raises(ValueError, match="`fit` must be of a law of size and training length, but is of"):
        smallest_budget(exact, targets={"en-de": 0.3})
