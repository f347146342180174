import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnmt_data.draws import random_units, stream_key
from mnmt_data.mixture import Mixture


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"en-de": 0.5, "en-fr": 0.4}, r"`weights` must sum to 1, but sum to 0\.9\."),
        ({"en-de": 1.00001}, r"`weights` must sum to 1, but sum to 1\.00001\."),
        ({}, r"`weights` must sum to 1, but sum to 0\."),
        ({"en-de": 1.5, "en-fr": -0.5}, r"`weights` must be finite and not negative, but en-fr has -0\.5\."),
        ({"en-de": float("nan")}, r"`weights` must be finite and not negative, but en-de has nan\."),
        ({"en-de": float("inf")}, r"`weights` must be finite and not negative, but en-de has inf\."),
    ],
)
def test_a_wrong_weight_is_named(weights, message):
    with pytest.raises(ValueError, match=message):
        Mixture(weights)


def test_weights_are_kept_as_given():
    third = 1 / 3
    mixture = Mixture({"b": third, "a": third, "c": third})
    assert mixture.weights == {"b": third, "a": third, "c": third}
    assert mixture.tasks == ("b", "a", "c")


def test_changing_the_given_weights_does_not_change_the_mixture():
    weights = {"a": 0.25, "b": 0.75}
    mixture = Mixture(weights)
    weights["a"] = 0.5
    assert mixture.weights == {"a": 0.25, "b": 0.75}


@pytest.mark.parametrize(
    ("unit", "task"), [(0.0, "b"), (0.2499, "b"), (0.25, "c"), (0.75, "e"), (np.nextafter(1, 0), "e")]
)
def test_a_choice_falls_into_the_interval_of_its_task(unit, task):
    mixture = Mixture({"a": 0, "b": 0.25, "c": 0.5, "d": 0, "e": 0.25, "f": 0})
    assert mixture.tasks[mixture.choose(np.array([unit]))[0]] == task


@settings(deadline=None)
@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=6).filter(lambda raw: sum(raw) > 0.1), st.integers(0, 99)
)
def test_realised_shares_agree_with_the_weights(raw, seed):
    weights = {f"xx-{i}": share / sum(raw) for i, share in enumerate(raw)}
    mixture, draws = Mixture(weights), 50_000
    counts = np.bincount(mixture.choose(random_units(stream_key(seed), 0, draws)), minlength=len(raw))
    expected = np.array(list(weights.values())) * draws
    assert counts[expected == 0].sum() == 0
    common = expected > 5
    chi_square = ((counts - expected)[common] ** 2 / expected[common]).sum()
    assert chi_square < 35
    assert counts[~common].sum() <= 30 * max(1, (~common).sum())


def test_a_weight_is_not_rounded():
    """A share of 1 in 3,000, which percents or small integers could not hold, is met within 4 deviations."""
    mixture, draws = Mixture({"rare": 1 / 3000, "common": 2999 / 3000}), 3_000_000
    rare = np.count_nonzero(mixture.choose(random_units(stream_key(0), 0, draws)) == 0)
    assert abs(rare - 1000) < 4 * np.sqrt(1000)
