"""Predictions stand beside what was measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mnmt_laws import LawFit, Observations, predict_held_out
from mnmt_laws.figures.predictions import draw_held_out
from mnmt_laws.figures.style import Chart

Read = Callable[[Chart], Any]


def test_held_out_values_are_where_they_were_measured_and_predicted(
    fits: dict[str, LawFit], observations: Observations, read: Read
) -> None:
    held_out = predict_held_out(fits["capacity"])
    drawing = read(draw_held_out(held_out, observations))
    points = drawing.rows("point")
    np.testing.assert_allclose(points["measured"], held_out.rows["observed"], rtol=1e-5)
    np.testing.assert_allclose(points["predicted"], held_out.rows["predicted"], rtol=1e-5)
    assert {kind or "nothing new" for kind in held_out.kinds} <= drawing.labels()
    assert {"run", "task", "size N", "weight p", "measured", "predicted", "error"} <= drawing.tips()


def test_held_out_values_have_the_intervals_that_are_known(
    fits: dict[str, LawFit], observations: Observations, read: Read
) -> None:
    held_out = predict_held_out(fits["capacity"])
    value = held_out.rows["predicted"]
    ends = ["lower", "upper", "predicted_lower", "predicted_upper"]
    bare = held_out.rows.drop(columns=ends)
    assert not read(draw_held_out(replace(held_out, rows=bare), observations)).layers("rule")
    rows = bare.assign(lower=0.9 * value, upper=1.1 * value)
    assert len(read(draw_held_out(replace(held_out, rows=rows), observations)).layers("rule")) == 1
    rows = rows.assign(predicted_lower=0.8 * value, predicted_upper=1.2 * value)
    drawing = read(draw_held_out(replace(held_out, rows=rows), observations))
    widths = [layer["mark"]["strokeWidth"] for layer in drawing.layers("rule")]
    assert widths == [5, 1.5]
    assert {"95% of the law", "95% of a new model"} <= drawing.tips()
