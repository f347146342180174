"""Advice in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mnmt_laws import LawFit, Recommendation, recommend
from mnmt_laws.sentences.advice import advice_sentences, cost_text, mixture_of, rival_text, stake_sentence


@pytest.fixture(scope="module")
def advice(exact: LawFit) -> Recommendation:
    return recommend(exact, size=5e5, current={"en-de": 0.9, "en-zh": 0.1})


@pytest.mark.parametrize(
    ("weights", "text"),
    [
        ({"a": 1.0}, "a"),
        ({"a": 0.336, "b": 0.664}, "34% a and 66% b"),
        ({"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.25, "e": 0.15}, "30% c, 25% d, 20% b and 25% 2 others"),
    ],
)
def test_mixtures_name_the_largest_weights(weights: dict[str, float], text: str) -> None:
    assert mixture_of(weights) == text


@pytest.mark.parametrize(
    ("cost", "text"),
    [
        (0.01234, "0.012 nats"),
        (0.0006, "0.001 nats"),
        (0.0004, "0.0004 nats"),
        (-0.0021, "-0.002 nats"),
        (0.00002, "0 nats"),
        (float("nan"), "unknown"),
    ],
)
def test_costs_are_to_a_thousandth_of_a_nat(advice: Recommendation, cost: float, text: str) -> None:
    assert cost_text(advice, cost) == text


def test_relative_costs_are_percentages(advice: Recommendation) -> None:
    relative = replace(advice, want=replace(advice.want, aim="relative"))
    assert cost_text(relative, 0.0123) == "1.2%"
    assert advice_sentences(relative)[0].startswith(
        "For the least loss over that of each task alone, train a "
    )


def test_a_free_rule_is_named_and_else_the_rival_nearest_to_the_advice(advice: Recommendation) -> None:
    ruled = replace(advice, rule="equal weights")
    assert stake_sentence(ruled) == "These are equal weights; no other mixture is expected to do better."
    assert stake_sentence(advice).startswith("Equal weights would be expected to cost 0.0")


def test_a_probability_is_given_where_there_are_draws(advice: Recommendation) -> None:
    current = advice.rivals[-1]
    assert rival_text(advice, current).endswith(" nats more")  # one draw tells none
    drawn = replace(current, loss=0.01, interval=(-0.002, 0.03), chance=0.999)
    assert rival_text(advice, drawn) == "0.010 nats more (-0.002 to 0.030); over 99% likely to be worse"
    assert rival_text(advice, replace(drawn, chance=0.416)).endswith("; 42% likely to be worse")


def test_the_range_names_the_amount_and_whose_it_is(advice: Recommendation) -> None:
    ranged = replace(advice, ranges={"en-de": (0.3, 0.6), "en-zh": (0.4, 0.7)}, amount=0.01)
    first = next(iter(advice.weights))
    low, high = ranged.ranges[first]
    start = f"Any weight of {first} from {low:.0%} to {high:.0%} is expected to cost at most 0.010 nats more"
    assert advice_sentences(ranged)[2] == f"{start}, the scatter of one run about the law."
    assert advice_sentences(replace(ranged, amount_given=True))[2] == f"{start}."
