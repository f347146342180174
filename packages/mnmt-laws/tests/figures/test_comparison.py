"""Laws and intervals side by side."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure

from mnmt_laws.figures.comparison import draw_comparison, draw_intervals
from mnmt_laws.figures.style import to_svg

Read = Callable[[Figure], Any]


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
    values = [{x for x, _ in read(figure).marks("o", panel)} for panel in range(3)]
    assert values[0] == excess
    assert sorted(values[1]) == pytest.approx([1.0, 3.0, 5.0])
    assert len(read(figure).marks("o", 2)) == 3  # the unknown error is left blank
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == ["β varies", "L∞ varies"]
    assert to_svg(figure) == to_svg(draw_comparison(comparison_table(), criterion=criterion))


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
    figure = draw_intervals(pd.DataFrame(rows, columns=columns))
    assert [axes.get_xlabel() for axes in figure.axes] == ["α", "L∞"]
    assert read(figure).labels == ["profile", "residual"]
    assert len({y for _, y in read(figure).marks("o")}) == 4
