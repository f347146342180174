"""The next runs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mnmt_laws import (
    LawFit,
    Observations,
    Perturbation,
    ResidualBootstrap,
    default_candidates,
    design,
    fit,
    observe,
    simulate,
)
from mnmt_laws.answers.design.candidates import cost_of_runs

QUANTITY = "loss:en-de@size=1e6,p=0.3"


def test_the_present_spread_is_that_of_the_refits(two_tasks: LawFit) -> None:
    proposal = design(two_tasks, quantity=QUANTITY, runs=2)
    predicted = two_tasks.predict(draws=True, task="en-de", size=1e6, weight=0.3)
    assert proposal.std == pytest.approx(float(np.std(predicted, ddof=1)))
    assert (proposal.runs["std"].diff().dropna() < 0).all()
    assert proposal.runs["std"].iloc[0] < proposal.std
    assert proposal.candidates["std"].is_monotonic_increasing


def test_a_run_at_the_point_itself_tells_most_of_a_loss(two_tasks: LawFit) -> None:
    target = (1e6, {"en-de": 0.3, "en-zh": 0.7})
    elsewhere = [(size, {"en-de": share, "en-zh": 1 - share}) for size in (1e4, 3e4) for share in (0.5, 0.9)]
    proposal = design(two_tasks, quantity=QUANTITY, candidates=[*elsewhere, target], runs=1, per="run")
    assert proposal.runs["size"][0] == 1e6


@pytest.mark.slow
def test_the_predicted_fall_is_what_a_trained_run_brings(laws: dict, study_sizes: tuple[float, ...]) -> None:  # type: ignore[type-arg]
    """A study is repeated with and without the proposed run: its spread falls about as predicted."""
    weights, sizes, repeats = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0, 0.0), study_sizes[::2], 40

    def predict(seed: int, *more: pd.DataFrame) -> float:
        table = simulate(laws, sizes=sizes, weights=weights, noise=0.01, seed=seed)
        rows = pd.concat([table, *more], ignore_index=True)
        rows = rows[rows["task"] == "en-de"]  # tasks are fitted one by one
        fitted = fit(observe(rows), law="capacity", uncertainty=Perturbation(refits=0))
        return float(fitted.predict(task="en-de", size=1e6, weight=0.3))

    table = simulate(laws, sizes=sizes, weights=weights, noise=0.01, seed=999)
    first = fit(observe(table), law="capacity", uncertainty=ResidualBootstrap(refits=100))
    proposal = design(first, quantity=QUANTITY, runs=1, per="run").runs.iloc[0]
    share = float(proposal["mixture"].split(",")[0].split(":")[1]) if "en-de" in proposal["mixture"] else 0.0
    more = [
        simulate(laws, sizes=[proposal["size"]], weights=[share], noise=0.01, seed=seed + 5000).assign(seed=1)
        for seed in range(repeats)
    ]
    before = np.std([predict(seed) for seed in range(repeats)])
    after = np.std([predict(seed, more[seed]) for seed in range(repeats)])
    assert after / before == pytest.approx(proposal["share"], abs=0.15)
    assert after < before


def test_runs_stay_within_the_budget(two_tasks: LawFit) -> None:
    proposal = design(two_tasks, quantity=QUANTITY, runs=20, budget=2e5, per="run")
    assert proposal.runs["total_cost"].iloc[-1] <= 2e5
    assert len(proposal.runs) < 20
    with pytest.raises(ValueError, match=r"`budget` must be at least 9.46e\+03 FLOPs, the cheapest run"):
        design(two_tasks, quantity=QUANTITY, budget=10.0)


@pytest.mark.parametrize(
    "quantity",
    [
        "fraction:en-zh@p=0.2",
        "weight:en-de@size=1e6",
        "limit:en-de",
        "exponent:en-zh",
        "size:en-de=0.3,en-zh=0.4",
    ],
)
def test_every_quantity_can_be_asked_for(two_tasks: LawFit, quantity: str) -> None:
    proposal = design(two_tasks, quantity=quantity, runs=1)
    assert 0 < proposal.runs["share"][0] < 1


def test_costs_come_from_the_table(clean: Observations) -> None:
    frame = clean.frame.assign(flops=7.0 * clean.frame["size"] ** 1.5)
    fitted = fit(observe(frame), law="capacity", uncertainty=Perturbation(refits=0))
    assert cost_of_runs(fitted)(1e5) == pytest.approx(7.0 * 1e5**1.5)
    tokens = fit(observe(clean.frame.assign(tokens=1e6)), law="capacity", uncertainty=Perturbation(refits=0))
    assert cost_of_runs(tokens)(1e5) == pytest.approx(6e11)


def test_candidates_go_beyond_what_was_seen(two_tasks: LawFit) -> None:
    pool = default_candidates(two_tasks)
    sizes = {size for size, _, _ in pool}
    assert max(sizes) == 2 * two_tasks.observations.fit["size"].max()
    assert {0.2, 0.4} <= {round(mixture.get("en-de", 0.0), 4) for _, mixture, _ in pool}


def test_refits_are_needed(clean: Observations) -> None:
    with pytest.raises(ValueError, match="`fit` must have at least 10 refits"):
        design(fit(clean, law="capacity", uncertainty=Perturbation(refits=0)), quantity=QUANTITY)
