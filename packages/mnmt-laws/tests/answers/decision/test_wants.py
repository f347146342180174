"""Costs of what people want, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from mnmt_laws.answers.decision import Limits, Want
from mnmt_laws.answers.decision.stakes import mixtures_to_beat
from mnmt_laws.errors import ArgumentError

TASKS = ["a", "b"]
LOSSES = np.array([[[1.0, 2.0, 3.0], [4.0, 2.5, 2.0]]])  # (1 draw, 2 tasks, 3 mixtures)
ALONE = np.array([[1.0, 2.0]])


def test_the_relative_cost_is_the_greatest_share_above_a_model_of_the_task_alone() -> None:
    want = Want(aim="relative", importance={"a": 0.5, "b": 0.5})
    anchors = want.anchors(LOSSES, ALONE, TASKS)
    np.testing.assert_allclose(want.costs(LOSSES, anchors, TASKS), [[1.0, 1.0, 2.0]])


def test_targets_cost_what_is_missed_and_what_the_rest_loses() -> None:
    want = Want(aim="targets", importance={"a": 0.5, "b": 0.5}, targets={"a": 2.2})
    anchors = want.anchors(LOSSES, ALONE, TASKS)
    np.testing.assert_allclose(anchors, [[2.5]])  # b's least loss where a reaches 2.2
    np.testing.assert_allclose(want.costs(LOSSES, anchors, TASKS), [[1.5, 0.0, 0.8]])


def test_targets_that_no_mixture_reaches_are_missed_by_as_little_as_can_be() -> None:
    want = Want(aim="targets", importance={"a": 0.5, "b": 0.5}, targets={"a": 0.5, "b": 2.0})
    anchors = want.anchors(LOSSES, ALONE, TASKS)
    np.testing.assert_allclose(want.costs(LOSSES, anchors, TASKS), [[2.5, 2.0, 2.5]])


def test_targets_of_metrics_that_rise_are_missed_from_below() -> None:
    want = Want(aim="targets", importance={"a": 0.5, "b": 0.5}, targets={"a": 60.0, "b": 40.0}, sign=-1)
    chrf = np.array([[[55.0, 61.0], [45.0, 38.0]]])
    np.testing.assert_allclose(want.costs(-chrf, np.zeros((1, 1)), TASKS), [[5.0, 2.0]])


def test_a_runs_cost_scatters_as_its_losses_do() -> None:
    deviations, losses = np.array([0.03, 0.04]), np.array([1.0, 2.0])
    equal = {"a": 0.5, "b": 0.5}
    assert Want(importance=equal).scatter(deviations, losses, TASKS) == pytest.approx(0.025)
    assert Want(aim="worst", importance=equal).scatter(deviations, losses, TASKS) == 0.04
    assert Want(aim="relative", importance=equal).scatter(deviations, losses, TASKS) == 0.03


def test_mixtures_to_beat_are_there_once() -> None:
    even = {"a": 1.0, "b": 1.0}
    mixtures = mixtures_to_beat(TASKS, even, {"a": 3.0, "b": 1.0}, {})
    assert mixtures == {
        "equal weights": {"a": 0.5, "b": 0.5},
        "the corpus' proportions": {"a": 0.75, "b": 0.25},
    }
    assert "the current mixture" in mixtures_to_beat(TASKS, even, {}, {"a": 0.5, "b": 0.5})


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (
            Limits(most={"a": 0.4, "b": 0.5}),
            r"`repeats` leaves no mixture: the caps \(a 0.4, b 0.5\) sum to 0.9",
        ),
        (Limits(divergence=0.1), "`divergence` needs the mixture that it is measured from; give `current`"),
        (
            Limits(most={"a": 0.3}, near={"a": 0.9, "b": 0.1}, divergence=0.01),
            "no mixture keeps `least_weight`, `repeats` and `divergence` together; a:0.",
        ),
        (Limits(least={"a": 0.4}, most={"a": 0.3}), "no mixture keeps `least_weight`, `repeats`"),
    ],
)
def test_limits_that_leave_no_mixture_are_refused(limits: Limits, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        limits.check(TASKS)
