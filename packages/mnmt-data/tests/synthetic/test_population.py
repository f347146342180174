"""Margins of the lists that stand for whole distributions."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.synthetic.population import couple


@st.composite
def distributions(draw, *, lists=3, positions=4):
    """(lists, positions, outcomes) probabilities, some of them 0."""
    shape = draw(st.integers(1, lists)), draw(st.integers(1, positions)), draw(st.integers(1, 6))
    count = int(np.prod(shape))
    odds = np.array(draw(st.lists(st.integers(0, 9), min_size=count, max_size=count)), dtype=float)
    odds = odds.reshape(shape)
    odds[:, :, 0] += odds.sum(axis=2) == 0
    return odds / odds.sum(axis=2, keepdims=True)


@given(shares=distributions())
def test_a_coupling_has_every_distribution_as_its_margin(shares):
    tuples, weights = couple(shares)
    lists, positions, outcomes = shares.shape
    assert tuples.shape == (lists, positions * outcomes, positions)
    assert (weights >= 0).all()
    for number in range(lists):
        for position in range(positions):
            margin = np.bincount(tuples[number, :, position], weights=weights[number], minlength=outcomes)
            np.testing.assert_allclose(margin, shares[number, position], atol=1e-12)
