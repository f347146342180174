"""Predictions stand beside what was measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from mnmt_laws import LawFit, Observations, predict_held_out
from mnmt_laws.figures.points import NOTE
from mnmt_laws.figures.predictions import draw_held_out, draw_more_tasks
from mnmt_laws.figures.style import Chart, to_svg

Read = Callable[[Chart], Any]


def test_held_out_values_are_where_they_were_measured_and_predicted(
    fits: dict[str, LawFit], corrected: Observations, read: Read
) -> None:
    held_out = predict_held_out(fits["capacity"])
    drawing = read(draw_held_out(held_out, corrected))
    points = drawing.rows("point")
    np.testing.assert_allclose(points["measured"], held_out.rows["observed"], rtol=1e-5)
    np.testing.assert_allclose(points["predicted"], held_out.rows["predicted"], rtol=1e-5)
    assert points["kind"].eq(NOTE).sum() == 2
    assert {NOTE, "new size", "new weight", "new weight and size"} <= drawing.labels()
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


def more_rows(sizes: tuple[float, ...]) -> pd.DataFrame:
    rows = [
        ("r", task, size, share, f"aa:{share},bb:{1 - share}", 1 / i, 1.1 / i, 1.0 / i, 1.2 / i)
        for task in ("aa", "bb")
        for share in (0.25, 0.5)
        for i, size in enumerate(sizes, start=1)
    ]
    columns = ["run", "task", "size", "weight", "mixture", "observed", "predicted", "lower", "upper"]
    return pd.DataFrame(rows, columns=columns)


def test_more_tasks_have_a_panel_for_each_task_and_a_line_for_each_mixture(read: Read) -> None:
    figure = draw_more_tasks(more_rows((1e4, 1e5, 1e6)))
    drawing = read(figure)
    assert [panel["title"] for panel in drawing.panels] == ["aa", "bb"]
    lines = drawing.rows("line")
    assert lines["line"].nunique() == 2
    first = lines[lines["line"] == "aa:0.25  bb:0.75"].sort_values("size")
    np.testing.assert_allclose(first["predicted"], [1.1, 1.1 / 2, 1.1 / 3], rtol=1e-5)
    assert drawing.labels() == {"aa:0.25  bb:0.75", "aa:0.5  bb:0.5"}
    assert to_svg(figure) == to_svg(draw_more_tasks(more_rows((1e4, 1e5, 1e6))))


def test_more_tasks_of_one_size_stand_against_their_predictions(read: Read) -> None:
    drawing = read(draw_more_tasks(more_rows((1e6,)), metric="chrf", unit="points"))
    assert len(drawing.panels) == 1
    assert drawing.title("x") == "measured chrf (points)"
    assert drawing.labels() >= {"aa", "bb"}
