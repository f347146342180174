"""Frontiers of two tasks and more."""

from __future__ import annotations

import numpy as np
import pytest

from mnmt_laws import LawFit, Observations, Perturbation, TableError, fit, frontier, observe

SIZE = 5e5


def test_a_frontier_is_the_laws_predictions_with_their_spread(two_tasks: LawFit) -> None:
    points = frontier(two_tasks, size=SIZE)
    weight = points.weight.sel(task="en-de").to_numpy()
    np.testing.assert_allclose(
        points.value.sel(task="en-de"), two_tasks.predict(task="en-de", size=SIZE, weight=weight), rtol=0.01
    )
    np.testing.assert_allclose(points.weight.sum("task"), 1.0)
    assert (points.lower < points.value).all()
    assert (points.value < points.upper).all()
    assert (weight.min(), weight.max()) == pytest.approx((0.1, 0.9))
    assert points.attrs["size"] == SIZE
    assert points.attrs["units"] == "nats per token"


def test_three_tasks_are_spread_over_the_simplex(three_tasks: LawFit) -> None:
    points = frontier(three_tasks, size=SIZE)
    assert list(points.task.values) == ["en-de", "en-fr", "en-zh"]
    assert 500 < points.sizes["point"] <= 2000
    np.testing.assert_allclose(points.weight.sum("task"), 1.0)
    assert float(points.weight.min()) > 0


def test_frontiers_refuse_what_they_cannot_show(two_tasks: LawFit, clean: Observations) -> None:
    with pytest.raises(ValueError, match="`size` must be above 0 parameters, but is -1"):
        frontier(two_tasks, size=-1)
    with pytest.raises(TableError, match="predicts no mixtures"):
        frontier(clean.frame, law="power", size=SIZE)
    alone = observe(clean.frame[clean.frame["task"] == "en-de"].drop(columns="mixture"))
    single = fit(alone, law="capacity", uncertainty=Perturbation(refits=0))
    with pytest.raises(TableError, match="needs two tasks or more, but the table has en-de only"):
        frontier(single, size=SIZE)
