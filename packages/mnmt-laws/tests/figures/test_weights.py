"""Relative gains are the fractions over the weight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from mnmt_laws import EffectiveFractions, Observations, Perturbation, effective_fractions, fit
from mnmt_laws.figures.weights import draw_relative_gain

Read = Callable[[Figure], Any]


def test_relative_gain_is_the_fraction_over_the_weight(effective: EffectiveFractions, read: Read) -> None:
    figure = draw_relative_gain({"news": effective, "test": effective}, task="en-de")
    assert read(figure).labels == ["news", "test", "f = p"]
    fractions = effective.fractions.value.sel(task="en-de").dropna("weight")
    first, second = (
        np.asarray(container.lines[0].get_xydata(), float)  # type: ignore[attr-defined]
        for container in figure.axes[0].containers
    )
    np.testing.assert_allclose(first[:, 1], fractions / fractions.weight)
    np.testing.assert_allclose(second[:, 1], first[:, 1])
    shift = second[:, 0] - first[:, 0]
    assert np.all((shift > 0) & (shift < 0.02))  # side by side, in the order given


def test_relative_gain_without_a_task_holds_every_task(effective: EffectiveFractions, read: Read) -> None:
    assert read(draw_relative_gain({"": effective})).labels == ["en-de", "en-zh", "f = p"]
    assert read(draw_relative_gain({"a": effective})).labels[:2] == ["a, en-de", "a, en-zh"]


def test_relative_gain_needs_known_fractions(observations: Observations) -> None:
    mixed = replace(observations, frame=observations.frame[observations.frame["weight"] < 1])
    unknown = effective_fractions(fit(mixed, uncertainty=Perturbation(refits=0)))
    with pytest.raises(ValueError, match="known effective fractions"):
        draw_relative_gain({"test": unknown})
