"""Predictions of laws with a value for each weight, at the weights between."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import PchipInterpolator

from mnmt_laws import Observations, Perturbation, fit
from mnmt_laws.fitting.evaluator import LEAST, between_weights

WEIGHTS = np.array([0.1, 0.25, 0.5, 0.7, 1.0])


def some_nodes(seed: int, refits: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.5, 4.0, (refits, 1, len(WEIGHTS)))


@given(seed=st.integers(0, 10**6))
def test_between_its_weights_the_curve_is_scipys_monotone_cubic_on_log_axes(seed: int) -> None:
    nodes, at = some_nodes(seed), np.linspace(0.1, 1.0, 57)
    expected = np.exp(PchipInterpolator(np.log(WEIGHTS), np.log(nodes[:, 0]), axis=1)(np.log(at)))
    np.testing.assert_allclose(between_weights(WEIGHTS, nodes, at[None]), expected, rtol=1e-10)


def test_beyond_its_weights_the_curve_goes_on_straight() -> None:
    nodes = some_nodes(1)
    for ends, at in (([0, 1], np.array([0.02, 0.05])), ([-1, -2], np.array([1.5, 2.0]))):
        (x0, x1), y = np.log(WEIGHTS[ends]), np.log(nodes[:, 0][:, ends])
        slope = (y[:, 1] - y[:, 0]) / (x1 - x0)
        expected = np.exp(y[:, :1] + slope[:, None] * (np.log(at) - x0))
        np.testing.assert_allclose(between_weights(WEIGHTS, nodes, at[None]), expected, rtol=1e-10)


def test_nodes_come_back_and_a_power_of_the_weight_is_exact() -> None:
    nodes = some_nodes(2)
    np.testing.assert_allclose(between_weights(WEIGHTS, nodes, WEIGHTS[None]), nodes[:, 0], rtol=1e-12)
    power, at = 2.0 * WEIGHTS**-0.4, np.array([[0.01, 0.3, 0.9]])
    np.testing.assert_allclose(between_weights(WEIGHTS, power[None, None], at), 2.0 * at**-0.4, rtol=1e-12)


def test_metrics_below_zero_keep_their_own_scale_and_zero_is_the_least_weight() -> None:
    nodes = some_nodes(4) - 3.0
    at = np.linspace(0.1, 1.0, 9)
    expected = PchipInterpolator(np.log(WEIGHTS), nodes[:, 0], axis=1)(np.log(at))
    np.testing.assert_allclose(between_weights(WEIGHTS, nodes, at[None]), expected)
    zero, least = (between_weights(WEIGHTS, nodes, np.array([[weight]])) for weight in (0.0, LEAST))
    np.testing.assert_array_equal(zero, least)


def test_a_law_of_each_weight_predicts_its_own_weights_and_those_between(clean: Observations) -> None:
    joint = fit(clean, law="joint", uncertainty=Perturbation(refits=0))
    between = joint.evaluator.predict_points(
        joint.parameters, points=np.array([[[0.3, 0.7], [0.4, 0.6]]]), size=5e5
    )[0]
    assert between[0, 0] == joint.predict(task="en-de", size=5e5, weight=0.3)
    low, high = (float(joint.predict(task="en-de", size=5e5, weight=weight)) for weight in (0.5, 0.3))
    assert low < between[0, 1] < high
