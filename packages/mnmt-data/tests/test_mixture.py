from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.stream.mixture import Mixture

sizes = st.dictionaries(st.text(max_size=3), st.integers(1, 10**10), min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"en-de": 0.5, "en-fr": 0.4}, r"`weights` must sum to 1, but sum to 0\.9\."),
        ({"en-de": 1.00001}, r"`weights` must sum to 1, but sum to 1\.00001\."),
        ({}, r"`weights` must sum to 1, but sum to 0\."),
        ({"en-de": 1.5, "en-fr": -0.5}, r"`weights` must be finite and not negative, but en-fr has -0\.5\."),
        ({"en-de": nan}, r"`weights` must be finite and not negative, but en-de has nan\."),
        ({"en-de": inf}, r"`weights` must be finite and not negative, but en-de has inf\."),
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


@given(sizes, st.floats(0.5, 100))
def test_tempered_weights_are_sizes_to_the_power_of_one_over_t(sizes, temperature):
    powers = {task: size ** (1 / temperature) for task, size in sizes.items()}
    expected = {task: power / sum(powers.values()) for task, power in powers.items()}
    mixture = Mixture.tempered(sizes, temperature)
    assert mixture.weights == pytest.approx(expected, rel=1e-9)
    assert mixture.tasks == tuple(sizes)


def test_tempered_weights_of_a_known_case():
    """Ten times as much has 10^(2/5) times the weight at T = 5/2."""
    weights = Mixture.tempered({"a": 10, "b": 100, "c": 1000}, 2.5).weights
    assert weights["b"] / weights["a"] == pytest.approx(2.51188643150958)
    assert weights["c"] / weights["a"] == pytest.approx(6.30957344480193)


@given(sizes)
def test_temperature_one_is_proportional_and_an_infinite_one_even(sizes):
    proportional = {task: size / sum(sizes.values()) for task, size in sizes.items()}
    assert Mixture.proportional(sizes).weights == pytest.approx(proportional)
    assert Mixture.tempered(sizes, 1).weights == Mixture.proportional(sizes).weights
    assert Mixture.tempered(sizes, inf).weights == {task: pytest.approx(1 / len(sizes)) for task in sizes}


@given(sizes)
def test_a_low_temperature_gives_all_to_the_largest(sizes):
    weights = Mixture.tempered(sizes, 1e-12).weights
    largest = [task for task, size in sizes.items() if size == max(sizes.values())]
    assert weights == {task: pytest.approx(1 / len(largest) if task in largest else 0) for task in sizes}


@pytest.mark.parametrize(
    ("sizes", "temperature", "message"),
    [
        ({"a": 1}, 0, r"`temperature` must be positive, but is 0\."),
        ({"a": 1}, -1.0, r"`temperature` must be positive, but is -1\.0\."),
        ({"a": 1}, nan, r"`temperature` must be positive, but is nan\."),
        ({"a": 1, "b": 0}, 2, r"`sizes` must be positive, but b has 0\."),
        ({"a": 1, "b": -3}, 2, r"`sizes` must be positive, but b has -3\."),
        ({}, 2, r"`weights` must sum to 1, but sum to 0\."),
    ],
)
def test_what_cannot_be_tempered_is_named(sizes, temperature, message):
    with pytest.raises(ValueError, match=message):
        Mixture.tempered(sizes, temperature)
