"""Laws side by side."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pandas as pd

from mnmt_laws.figures.comparison import draw_comparison
from mnmt_laws.figures.style import Chart, to_svg

Read = Callable[[Chart], Any]


def comparison_table() -> pd.DataFrame:
    rows = [
        ("en-de", "joint", "β varies", 20.0),
        ("en-de", "limit-varies", "L∞ varies", 70.0),
        ("en-zh", "joint", "β varies", 33.0),
        ("en-zh", "limit-varies", "L∞ varies", 31.0),
        ("en-zh", "per-weighting", "all vary", math.nan),
    ]
    return pd.DataFrame(rows, columns=["task", "law", "label", "bic"])


def test_comparison_shows_the_excess_over_the_best_law(read: Read) -> None:
    figure = draw_comparison(comparison_table())
    drawing = read(figure)
    assert sorted(drawing.rows("point")["value"]) == [0.0, 0.0, 2.0, 50.0]  # an unknown BIC is left blank
    assert drawing.layers("point")[0]["encoding"]["y"]["sort"] == ["β varies", "L∞ varies", "all vary"]
    assert to_svg(figure) == to_svg(draw_comparison(comparison_table()))
