"""A law without training length, on models whose small weights were trained too briefly."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pandas as pd
import pytest

from mnmt_laws import ResidualBootstrap, observe
from mnmt_laws.answers.without_length import WithoutLength, without_length
from mnmt_laws.tables.observations import Observations

LENGTHS = (1e5, 1e6, 1e7)
SIZES = (1e3, 4e3, 1.6e4, 6.4e4)
WEIGHTS = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)


def observations(lengths: Sequence[float] = LENGTHS, sizes: Sequence[float] = SIZES) -> Observations:
    """Losses of L = 1 + 8 (p N)^-.4 + 40 (p D)^-.5, so that f(p) = p."""
    rows = [
        {
            "size": size,
            "tokens": tokens,
            "task": "aa",
            "weight": weight,
            "value": 1 + 8 * (weight * size) ** -0.4 + 40 * (weight * tokens) ** -0.5,
        }
        for size, tokens, weight in itertools.product(sizes, lengths, WEIGHTS)
    ]
    return observe(pd.DataFrame(rows))


@pytest.fixture(scope="module")
def without() -> WithoutLength:
    answer = without_length(observations(), uncertainty=ResidualBootstrap(refits=10))
    assert answer is not None
    return answer


def test_each_length_has_a_fit(without: WithoutLength) -> None:
    assert [length.tokens for length in without.by_length] == list(LENGTHS)
    assert all(len(length.fit.rows) == len(SIZES) * len(WEIGHTS) for length in without.by_length)


def test_shares_look_smaller_than_they_are_and_grow_with_the_length(without: WithoutLength) -> None:
    shares = without.fractions().set_index(["weight", "tokens"])["value"].unstack()
    assert list(shares.index) == [weight for weight in WEIGHTS if weight < 1]
    assert shares.loc[0.1].is_monotonic_increasing
    assert (shares.loc[0.1] < 0.1).all()


def test_longer_training_is_better_than_predicted(without: WithoutLength) -> None:
    assert len(without.rows) == len(SIZES) * len(WEIGHTS)
    assert (without.rows["error"] < 0).all()
    assert without.error > 0.01


@pytest.mark.parametrize("few", [{"lengths": LENGTHS[:1]}, {"sizes": SIZES[:2]}])
def test_one_length_or_two_sizes_are_too_few(few: dict[str, Sequence[float]]) -> None:
    assert without_length(observations(**few), uncertainty=ResidualBootstrap(refits=0)) is None


def test_lengths_that_nearly_agree_are_one() -> None:
    frame = observations(LENGTHS[:2]).frame
    uneven = frame.assign(tokens=frame["tokens"] * (1 + 0.1 * (frame["weight"] > 0.4)))
    answer = without_length(observe(uneven), uncertainty=ResidualBootstrap(refits=0))
    assert answer is not None
    assert [length.tokens for length in answer.by_length] == pytest.approx([1.1e5, 1.1e6])
