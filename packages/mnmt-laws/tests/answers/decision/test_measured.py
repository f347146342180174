"""Costs over a weight, and advice judged by models that it did not see."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mnmt_laws import KnownLaw, Observations, TableError, fit, observe, recommend, simulate
from mnmt_laws.answers.decision import Question, Want, back_test_advice, cost_curve, measured_costs

LAWS = {
    "aa": KnownLaw.capacity(alpha=0.4, beta=20, l_inf=0.5),
    "bb": KnownLaw.capacity(alpha=0.6, beta=300, l_inf=0.4),
}
WANT = Want(importance={"aa": 0.5, "bb": 0.5})


@pytest.fixture(scope="module")
def observations() -> Observations:
    """Two tasks without noise; the truth is the capacity law."""
    table = simulate(LAWS, sizes=(1e4, 2e4, 4e4, 8e4, 1.6e5), weights=(0.2, 0.35, 0.5, 0.65, 0.8), noise=1e-4)
    return observe(table)


def test_measured_costs_are_those_of_the_largest_size(observations: Observations) -> None:
    measured = measured_costs(observations, WANT)
    assert measured.size == 1.6e5
    frame = observations.frame[observations.frame["size"] == 1.6e5]
    for point, cost in zip(measured.mixtures, measured.costs, strict=True):
        first = frame[(frame["task"] == "aa") & np.isclose(frame["weight"], point[0])]["value"].item()
        second = frame[(frame["task"] == "bb") & np.isclose(frame["weight"], point[1])]["value"].item()
        assert cost == pytest.approx((first + second) / 2, rel=1e-12)
    assert measured.nearest({"aa": 0.6, "bb": 0.4}) == list(measured.mixtures[:, 0]).index(0.65)


def test_advice_from_smaller_models_is_the_best_where_a_law_holds(observations: Observations) -> None:
    test = back_test_advice(observations, WANT, refits=12)
    assert test.count == 5
    assert test.realised == pytest.approx(0, abs=1e-3)
    assert 0 <= test.stated < 0.01
    assert test.equal >= test.realised


def test_one_size_cannot_judge(observations: Observations) -> None:
    frame = observations.frame[observations.frame["size"] == 1e4]
    with pytest.raises(TableError):
        back_test_advice(replace(observations, frame=frame.reset_index(drop=True)), WANT)


def test_a_curve_is_zero_at_the_advice_and_least_there(observations: Observations) -> None:
    advice = recommend(fit(observations, law="capacity"))
    question = Question(forecast=advice.forecast, want=advice.want, limits=advice.limits)
    curve = cost_curve(question, advice.weights)
    at_advice = np.interp(advice.weights["aa"], curve["weight"], curve["cost"])
    assert at_advice == pytest.approx(0, abs=1e-3)
    assert (curve["cost"] >= -1e-3).all()
    assert (curve["lower"] <= curve["upper"]).all()
