"""Laws side by side."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from mnmt_laws.figures.comparison import draw_comparison
from mnmt_laws.figures.style import Chart, to_svg

Read = Callable[[Chart], Any]


def comparison_table() -> pd.DataFrame:
    rows = [
        ("en-de", "joint", "β varies", 8, 10.0, 20.0, 0.01, 0.02),
        ("en-de", "limit-varies", "L∞ varies", 8, 90.0, 70.0, 0.05, math.nan),
        ("en-zh", "joint", "β varies", 8, 10.0, 33.0, 0.03, 0.02),
        ("en-zh", "limit-varies", "L∞ varies", 8, 4.0, 31.0, math.nan, 0.06),
    ]
    columns = ["task", "law", "label", "num_params", "aic", "bic", "size_error", "mixture_error"]
    return pd.DataFrame(rows, columns=columns)


def test_comparison_shows_the_excess_over_the_best_law(read: Read) -> None:
    figure = draw_comparison(comparison_table())
    drawing = read(figure)
    values = [drawing.rows("point", panel)["value"] for panel in range(3)]
    assert set(values[0]) == {0.0, 50.0, 2.0}
    assert sorted(values[1]) == pytest.approx([0.01, 0.03, 0.05])
    assert len(values[2]) == 3  # the unknown error is left blank
    assert drawing.layers("point")[0]["encoding"]["y"]["sort"] == ["β varies", "L∞ varies"]
    assert to_svg(figure) == to_svg(draw_comparison(comparison_table()))


def test_comparison_draws_the_errors_that_the_table_has(read: Read) -> None:
    table = comparison_table().drop(columns="size_error").assign(length_error=0.1)
    titles = [read(draw_comparison(table)).title("x", panel) for panel in range(3)]
    assert titles == ["ΔBIC", "error at the longest training, left out", "error at mixtures left out"]
    assert len(read(draw_comparison(table)).panels) == 3
