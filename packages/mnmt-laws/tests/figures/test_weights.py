"""Coefficients, fractions and relative gains over the weight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mnmt_laws import EffectiveFractions, LawFit, Observations, Perturbation, effective_fractions, fit
from mnmt_laws.figures.style import Chart
from mnmt_laws.figures.weights import draw_coefficients, draw_fractions, draw_relative_gain

Read = Callable[[Chart], Any]


def test_relative_gain_is_the_fraction_over_the_weight(effective: EffectiveFractions, read: Read) -> None:
    drawing = read(draw_relative_gain({"news": effective, "test": effective}, task="en-de"))
    assert drawing.labels() == {"news", "test"}
    fractions = effective.fractions.value.sel(task="en-de").dropna("weight")
    points = drawing.rows("point")
    first, second = (points[points["line"] == label] for label in ("news", "test"))
    np.testing.assert_allclose(first["value"], fractions / fractions.weight, rtol=1e-5)
    np.testing.assert_allclose(second["value"], first["value"])
    shift = second["weight"].to_numpy() - first["weight"].to_numpy()
    assert np.all((shift > 0) & (shift < 0.02))  # side by side, in the order given


def test_relative_gain_without_a_task_holds_every_task(effective: EffectiveFractions, read: Read) -> None:
    assert read(draw_relative_gain({"": effective})).labels() == {"en-de", "en-zh"}
    assert read(draw_relative_gain({"a": effective})).labels() == {"a, en-de", "a, en-zh"}


def test_fractions_of_several_laws_have_bands(
    fits: dict[str, LawFit], effective: EffectiveFractions, read: Read
) -> None:
    laws = {"one": fits["capacity"], "other": fits["capacity"]}
    drawing = read(draw_fractions(task="en-de", effective=effective, laws=laws))
    assert drawing.labels() == {"f(p), 95% interval", "one", "other", "f = p"}
    band = drawing.rows("area")
    assert set(band["line"]) == {"one", "other"}
    assert (band["lower"] <= band["upper"]).all()
    alone = read(draw_fractions(task="en-de", laws=fits["capacity"]))
    assert alone.rows("point").empty


def test_coefficients_have_a_panel_each_and_the_true_limit(fits: dict[str, LawFit], read: Read) -> None:
    chart = draw_coefficients(
        task="en-de", per_weighting=fits["per_weighting"], joint=fits["joint"], irreducible=0.18
    )
    drawing = read(chart)
    assert [drawing.title("y", panel) for panel in range(3)] == [
        "exponent α",
        "limit L∞ (nats per token)",
        "factor β",
    ]
    limit = drawing.rows("line", 1)
    assert set(limit.loc[limit["line"] == "true limit", "value"]) == {0.18}


def test_relative_gain_needs_known_fractions(observations: Observations) -> None:
    mixed = replace(observations, frame=observations.frame[observations.frame["weight"] < 1])
    unknown = effective_fractions(fit(mixed, uncertainty=Perturbation(refits=0)))
    with pytest.raises(ValueError, match="known effective fractions"):
        draw_relative_gain({"test": unknown})
