"""Fractions and relative gains over the weight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mnmt_laws import (
    EffectiveFractions,
    LawFit,
    Observations,
    Perturbation,
    effective_fractions,
    fit,
)
from mnmt_laws.figures.style import Chart
from mnmt_laws.figures.weights import draw_fractions, draw_fractions_by_size, draw_fractions_of_sets

Read = Callable[[Chart], Any]


def test_fractions_of_sets_stand_side_by_side(effective: EffectiveFractions, read: Read) -> None:
    drawing = read(draw_fractions_of_sets({"news": effective, "test": effective}, task="en-de"))
    assert drawing.labels() == {"news", "test"}
    fractions = effective.fractions.value.sel(task="en-de").dropna("weight")
    points = drawing.rows("point")
    first, second = (points[points["line"] == label] for label in ("news", "test"))
    np.testing.assert_allclose(first["value"], fractions, rtol=1e-5)
    np.testing.assert_allclose(second["value"], first["value"])
    shift = second["weight"].to_numpy() - first["weight"].to_numpy()
    assert np.all((shift > 0) & (shift < 0.02))  # side by side, in the order given


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


def test_shares_by_size_are_points_and_bounds_of_the_longest_training(read: Read) -> None:
    rows = pd.DataFrame(
        {
            "task": "aa", "weight": 0.5, "length": [1e6, 2e6, 2e6, 2e6], "size": [1e4, 1e4, 2e4, 4e4],
            "value": [0.1, np.nan, 0.4, 0.3], "lower": [0.1, 0.0, 0.4, 0.3], "upper": [0.1, 0.9, 0.4, 0.3],
        }
    )  # fmt: skip
    drawing = read(draw_fractions_by_size(rows, task="aa"))
    points = drawing.rows("point")
    assert list(points["value"]) == [0.9, 0.4, 0.3]
    assert list(points["kind"]) == ["at most", "read", "read"]
    assert list(drawing.rows("line")["value"]) == [0.4, 0.3]


def test_fractions_of_sets_must_be_known(observations: Observations) -> None:
    mixed = replace(observations, frame=observations.frame[observations.frame["weight"] < 1])
    unknown = effective_fractions(fit(mixed, uncertainty=Perturbation(refits=0)))
    with pytest.raises(ValueError, match="known effective fractions"):
        draw_fractions_of_sets({"test": unknown})
