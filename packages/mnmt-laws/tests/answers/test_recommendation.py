"""Recommended mixtures, sizes and lengths."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnmt_laws import (
    ArgumentError,
    Forecast,
    KnownLaw,
    LawFit,
    Observations,
    TableError,
    observe,
    recommend,
    simulate,
)

SIZE = 5e5


def true_cost(laws: dict[str, KnownLaw], preference: dict[str, float], points: np.ndarray) -> np.ndarray:
    """Σ λ_i L_i of the laws that made the table, at (n, tasks) mixtures."""
    total, costs = sum(preference.values()), np.zeros(len(points))
    for place, (task, law) in enumerate(laws.items()):
        p, weight = law.parameters, points[:, place]
        gain = p["c1"] if not isinstance(p["c1"], dict) else None
        if gain is None:
            others = [list(laws).index(name) for name in p["c1"]]
            gain = points[:, others] @ np.array(list(p["c1"].values())) / np.maximum(1 - weight, 1e-12)
        share = weight + gain * weight ** p.get("c2", 1.0) * (1 - weight) ** p.get("c3", 1.0)
        costs += preference[task] / total * (p["beta"] * (share * SIZE) ** -p["alpha"] + p["l_inf"])
    return costs


@given(first=st.floats(0.3, 3))
@settings(max_examples=4)
def test_two_tasks_match_a_fine_grid_of_the_truth(
    clean_forecast: Forecast, laws: dict[str, KnownLaw], first: float
) -> None:
    preference = {"en-de": first, "en-zh": 1.0}
    advice = recommend(clean_forecast, preference=preference)
    grid = np.linspace(0.05, 0.95, 9001)
    costs = true_cost(laws, preference, np.stack([grid, 1 - grid], axis=1))
    assert advice.weights["en-de"] == pytest.approx(grid[costs.argmin()], abs=2e-3)
    assert advice.regret == pytest.approx(0.0, abs=1e-6)


def test_three_tasks_are_no_worse_than_any_random_mixture(three_tasks: LawFit) -> None:
    preference = {"en-de": 1.0, "en-fr": 3.0, "en-zh": 2.0}
    advice = recommend(three_tasks, size=SIZE, preference=preference)
    factors = np.array(list(preference.values())) / 6
    points = np.random.default_rng(0).dirichlet(np.ones(3), 2000) * 0.85 + 0.05
    chosen = np.array([list(advice.weights.values())])
    mean = np.einsum("k,dkn->n", factors, advice.forecast.losses(np.concatenate([points, chosen])))
    assert mean[-1] <= mean[:-1].min() + 1e-9
    assert math.fsum(advice.weights.values()) == pytest.approx(1.0)


def test_advice_says_what_the_model_will_reach_and_what_rivals_cost(two_tasks: LawFit) -> None:
    advice = recommend(two_tasks, size=SIZE, current={"en-de": 9, "en-zh": 1})
    for task in two_tasks.tasks:
        low, high = advice.intervals[task]
        assert low < advice.predicted[task] < high
        low, high = advice.ranges[task]
        assert low <= advice.weights[task] <= high
    current = advice.rivals[-1]
    assert (current.name, current.weights) == ("the current mixture", {"en-de": 0.9, "en-zh": 0.1})
    assert current.loss > 0
    assert current.chance > 0.95
    assert advice.regret >= 0
    assert advice.amount > 0
    assert not advice.amount_given


def test_a_wider_amount_widens_the_ranges(two_tasks: LawFit) -> None:
    narrow, wide = (recommend(two_tasks, size=SIZE, amount=amount).ranges for amount in (1e-3, 1e-2))
    for source, (low, high) in narrow.items():
        assert wide[source][0] < low < high < wide[source][1]


def test_one_law_and_its_refits_may_be_given(clean: Observations, exact: LawFit, laws: Any) -> None:
    advice = recommend(exact, size=SIZE)
    again = recommend(clean, law="capacity", size=SIZE, refits=0)
    assert advice.weights == pytest.approx(again.weights, abs=1e-6)
    with pytest.raises(TableError, match="the power law predicts no mixtures of this table; leave out --law"):
        recommend(clean, law="power")


def test_a_metric_that_rises_is_maximised(clean: Observations, clean_forecast: Forecast) -> None:
    frame = clean.frame.assign(metric="chrf", value=80 - 20 * clean.frame["value"])
    rising = recommend(observe(frame, metric="chrf"), law="capacity", size=SIZE, refits=20)
    falling = recommend(clean_forecast)
    assert rising.weights == pytest.approx(falling.weights, abs=0.02)
    for task, value in falling.predicted.items():
        assert rising.predicted[task] == pytest.approx(80 - 20 * value, abs=0.05)


def test_targets_lead_to_the_mixture_that_meets_them(
    clean_forecast: Forecast, laws: dict[str, KnownLaw]
) -> None:
    at = {"en-de": 0.3, "en-zh": 0.7}
    reached = clean_forecast.losses(np.array([list(at.values())]))[0, :, 0]
    targets = dict(zip(at, (reached * 1.0001).tolist(), strict=True))
    advice = recommend(clean_forecast, targets=targets)
    assert advice.want.aim == "targets"
    assert advice.weights == pytest.approx(at, abs=5e-3)
    assert not any("targets" in line for line in advice.warnings)
    line = recommend(clean_forecast, targets={"en-de": 0.01}).warnings[0]
    assert line.startswith("no mixture is expected to reach the targets; en-de:0.9")
    assert re.search(r"is nearest: en-de 0\.\d\d\d for 0\.01\.$", line)
    with pytest.raises(ArgumentError, match="`aim` is targets, but there are none; give `targets`"):
        recommend(clean_forecast, aim="targets")


def test_limits_are_kept(clean_forecast: Forecast) -> None:
    unique = {"en-de": 1e6, "en-zh": 1e8}
    capped = recommend(clean_forecast, unique_tokens=unique, repeats=4, tokens=2e7)
    assert capped.weights["en-de"] == pytest.approx(4 * 1e6 / 2e7, abs=1e-3)
    floor = recommend(clean_forecast, preference={"en-de": 1e6, "en-zh": 1.0}, least_weight=0.2)
    assert floor.weights["en-zh"] == pytest.approx(0.2, abs=1e-3)
    near = recommend(clean_forecast, current={"en-de": 0.9, "en-zh": 0.1}, divergence=0.02)
    divergence = sum(near.weights[name] * math.log(near.weights[name] / near.limits.near[name])
                     for name in near.weights)  # fmt: skip
    assert divergence == pytest.approx(0.02, abs=1e-4)


def test_leaving_the_data_is_said(exact: LawFit) -> None:
    warnings = recommend(exact, size=1e7, preference={"en-de": 1e4, "en-zh": 1.0}).warnings
    assert any("times the largest fitted" in line for line in warnings)
    assert any("of en-zh lies outside those fitted (0.1 to 1)" in line for line in warnings)
    assert any("below the smallest fitted (9456)" in line for line in recommend(exact, size=10).warnings)
    far = recommend(exact, size=2840 * exact.rows["size"].max()).warnings
    assert any("is 2,840 times the largest fitted" in line for line in far)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"preference": {"en-de": 1.0}}, "`preference` must give en-de, en-zh a number above 0 each"),
        ({"preference": {"en-de": 1.0, "en-zh": 0.0}}, "a number above 0 each"),
        ({"size": 0.0}, "`size` must be above 0 parameters, but is 0"),
        ({"budget": float("inf")}, "`budget` must be a finite number above 0 FLOPs, but is inf"),
        ({"size": 1e5, "tokens": 1e6, "budget": 1e12}, "`size`, `tokens` and `budget` are too many"),
        ({"least_weight": 0.5}, "`least_weight` must be below 1/2, but is 0.5"),
        ({"current": {"en-de": -1, "en-zh": 2}}, "`current` must be numbers of at least 0"),
        ({"current": {"en-fr": 1}}, "`current` must name tasks of en-de, en-zh, but names en-fr"),
        ({"unique_tokens": {"en-de": 1e6}}, "`unique_tokens` must give en-de, en-zh a number above 0 each"),
        ({"repeats": 2}, "`repeats` needs the unique tokens of every source"),
        ({"repeats": -2}, "`repeats` must be above 0, but is -2"),
        ({"divergence": 0.1}, "`divergence` needs the mixture that it is measured from; give `current`"),
        ({"amount": 0}, "`amount` must be above 0, but is 0"),
        ({"targets": {"en-de": float("nan")}}, "`targets` must be finite numbers, but en-de's is nan"),
    ],
)
def test_wrong_questions_are_refused(exact: LawFit, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        recommend(exact, **change)


def test_a_table_of_one_length_answers_at_its_length_only(laws: dict[str, KnownLaw]) -> None:
    table = simulate(laws, sizes=(1e4, 3e4, 1e5, 3e5), weights=(0.3, 0.5, 0.7)).assign(tokens=1e8)
    advice = recommend(table, law="joint", tokens=1.1e8, refits=0)
    assert advice.tokens is None
    with pytest.raises(
        TableError, match=r"were trained for about 1e\+08 tokens; 1e\+12 need runs of several"
    ):
        recommend(table, tokens=1e12)


SIZES, LENGTHS = np.geomspace(1e5, 1e8, 5), np.geomspace(1e7, 1e10, 5)
CHINCHILLA = {"l_inf": 0.4, "a": 300.0, "alpha": 0.34, "b": 900.0, "beta": 0.28}


def chinchilla_runs() -> pd.DataFrame:
    p = CHINCHILLA
    rows = [
        {"task": "a", "size": size, "tokens": tokens, "metric": "loss",
         "value": p["l_inf"] + p["a"] * size ** -p["alpha"] + p["b"] * tokens ** -p["beta"]}
        for size, tokens in itertools.product(SIZES, LENGTHS)
    ]  # fmt: skip
    return pd.DataFrame(rows)


@pytest.mark.parametrize("budget", [1e16, 1e19])
def test_the_best_size_of_one_task_is_chinchillas(budget: float) -> None:
    """N* = G (C / 6)^(β / (α + β)), G = (α A / (β B))^(1 / (α + β)) (Hoffmann et al. 2022, eq. 4)."""
    p = CHINCHILLA
    scale = (p["alpha"] * p["a"] / (p["beta"] * p["b"])) ** (1 / (p["alpha"] + p["beta"]))
    size = scale * (budget / 6) ** (p["beta"] / (p["alpha"] + p["beta"]))
    advice = recommend(chinchilla_runs(), budget=budget, refits=10)
    assert advice.size == pytest.approx(size, rel=0.02)
    assert advice.size is not None
    assert advice.tokens is not None
    assert 6 * advice.size * advice.tokens == pytest.approx(budget)
    assert advice.weights == {"a": 1.0}
    low, high = advice.size_range
    assert low <= advice.size <= high


@pytest.mark.parametrize("arguments", [{"size": 7.0}, {"size": 1e300}, {"budget": 1e40}, {"tokens": 1e30}])
def test_questions_that_no_table_answers_are_refused(arguments: dict[str, float]) -> None:
    with pytest.raises(
        ArgumentError, match=f"`{next(iter(arguments))}` must be near the .* of the table, but"
    ):
        recommend(chinchilla_runs(), law="chinchilla", refits=0, **arguments)
