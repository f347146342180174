"""The next runs."""

from __future__ import annotations

import pytest

from mnmt_laws import CandidateRun, LawFit, Recommendation, default_candidates, design, recommend
from mnmt_laws.answers.design.candidates import cost_of_runs


@pytest.fixture(scope="module")
def advice(two_tasks: LawFit) -> Recommendation:
    return recommend(two_tasks, size=1e6, preference={"en-de": 4, "en-zh": 1}, amount=1e-9)


def test_runs_remove_regret_within_their_budget(advice: Recommendation) -> None:
    proposal = design(advice, runs=3)
    left = [proposal.regret, *proposal.runs["regret"]]
    assert left == sorted(left, reverse=True)
    assert min(left) >= 0
    assert proposal.candidates["per_flop"].is_monotonic_decreasing
    first = proposal.runs.iloc[0]
    budget = float(first["cost"]) * 1.01
    assert design(advice, runs=3, budget=budget).runs["total_cost"].max() <= budget


def test_nothing_is_worth_training_for_a_small_stake(two_tasks: LawFit) -> None:
    proposal = design(recommend(two_tasks, size=1e6, amount=10.0))
    assert proposal.runs.empty
    assert proposal.reason == "small stake"


def test_a_run_removes_no_more_than_there_is_and_is_ranked_by_its_price(advice: Recommendation) -> None:
    mixture = {"en-de": 0.7, "en-zh": 0.3}
    options = [CandidateRun(size, mixture) for size in (1e4, 1e5, 1e6)]
    ranked = design(advice, candidates=options).candidates
    assert ranked["removed"].between(0, advice.regret).all()
    assert ranked["per_flop"].to_numpy() == pytest.approx((ranked["removed"] / ranked["cost"]).to_numpy())


def test_trained_models_are_no_candidates(advice: Recommendation) -> None:
    rows = advice.forecast.observations.frame
    trained = set(zip(rows["size"], rows["weight"].where(rows["task"] == "en-de"), strict=True))
    options = default_candidates(advice.forecast)
    assert options
    assert not trained & {(option.size, option.mixture.get("en-de", 0.0)) for option in options}


def test_a_run_costs_six_flops_for_each_parameter_and_token(two_tasks: LawFit) -> None:
    forecast = recommend(two_tasks, size=1e6).forecast
    price = cost_of_runs(forecast)
    assert price(2e5) / price(1e5) == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"runs": 0}, "`runs` must be at least 1"),
        ({"budget": 1e-30}, "the cheapest run"),
        ({"budget": 1e300}, "the cheapest run, and at most .*, but is 1e.300"),
        ({"candidates": [(1e5, {"en-xx": 1.0})]}, "names en-xx"),
        ({"candidates": [(None, {"en-de": 1.0})]}, "must hold `size`"),
    ],
)
def test_mistakes_are_named(advice: Recommendation, change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        design(advice, **change)  # type: ignore[arg-type]
