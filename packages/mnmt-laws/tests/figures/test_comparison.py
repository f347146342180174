"""Laws and intervals side by side."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from mnmt_laws.figures.comparison import draw_comparison, draw_intervals
from mnmt_laws.figures.style import Chart, to_svg

Read = Callable[[Chart], Any]


def comparison_table() -> pd.DataFrame:
    rows = [
        ("en-de", "joint", "β varies", 8, 10.0, 20.0, 0.01, 0.02),
        ("en-de", "limit-varies", "L∞ varies", 8, 90.0, 70.0, 0.05, math.nan),
        ("en-zh", "joint", "β varies", 8, 10.0, 33.0, 0.03, 0.02),
        ("en-zh", "limit-varies", "L∞ varies", 8, 4.0, 31.0, math.nan, 0.06),
    ]
    columns = ["task", "law", "label", "num_params", "aic", "bic", "size_error", "weight_error"]
    return pd.DataFrame(rows, columns=columns)


@pytest.mark.parametrize(("criterion", "excess"), [("bic", {0.0, 50.0, 2.0}), ("aic", {0.0, 80.0, 6.0})])
def test_comparison_shows_the_excess_over_the_best_law(
    criterion: str, excess: set[float], read: Read
) -> None:
    figure = draw_comparison(comparison_table(), criterion=criterion)
    drawing = read(figure)
    values = [drawing.rows("point", panel)["value"] for panel in range(3)]
    assert set(values[0]) == excess
    assert sorted(values[1]) == pytest.approx([0.01, 0.03, 0.05])
    assert len(values[2]) == 3  # the unknown error is left blank
    assert drawing.layers("point")[0]["encoding"]["y"]["sort"] == ["β varies", "L∞ varies"]
    assert to_svg(figure) == to_svg(draw_comparison(comparison_table(), criterion=criterion))


def test_comparison_draws_the_errors_that_the_table_has(read: Read) -> None:
    table = comparison_table().drop(columns="size_error").assign(length_error=0.1, mixture_error=math.nan)
    titles = [read(draw_comparison(table)).title("x", panel) for panel in range(3)]
    assert titles == ["ΔBIC", "error at the longest training, left out", "error at weights left out"]
    assert len(read(draw_comparison(table)).panels) == 3


def test_comparison_knows_two_criteria() -> None:
    with pytest.raises(ValueError, match="`criterion` must be aic or bic, but is 'dic'"):
        draw_comparison(comparison_table(), criterion="dic")


def test_intervals_stand_side_by_side(read: Read) -> None:
    rows = [
        (task, name, method, 0.5, 0.4, upper)
        for task in ("aa", "bb")
        for name in ("alpha", "l_inf")
        for method, upper in (("profile", 0.7), ("residual", math.nan))
    ]
    columns = ["task", "parameter", "method", "estimate", "lower", "upper"]
    drawing = read(draw_intervals(pd.DataFrame(rows, columns=columns)))
    assert [drawing.title("x", panel) for panel in range(2)] == ["α", "L∞"]
    assert drawing.labels() == {"profile", "residual"}
    assert len(drawing.rows("point")) == 4
    assert drawing.layers("point")[0]["encoding"]["yOffset"]["field"] == "method"
