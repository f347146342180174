"""Predictions stand beside what was measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from mnmt_laws import LawFit, Observations, predict_held_out
from mnmt_laws.figures.points import CORRECTED, NOTE
from mnmt_laws.figures.predictions import draw_held_out, draw_more_tasks
from mnmt_laws.figures.style import to_svg

Read = Callable[[Figure], Any]


def test_held_out_values_are_where_they_were_measured_and_predicted(
    fits: dict[str, LawFit], corrected: Observations, read: Read
) -> None:
    held_out = predict_held_out(capacity=fits["capacity"], joint=fits["joint"])
    drawing = read(draw_held_out(held_out, corrected))
    assert set(drawing.marks()) == set(zip(held_out.rows["observed"], held_out.rows["capacity"], strict=True))
    assert len(drawing.marks(CORRECTED)) == 2
    assert {NOTE, "new size", "new weight", "new weight and size"} <= set(drawing.labels)


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
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["aa", "bb"]
    solid = read(figure).lines("-")
    assert len(solid) == 2
    np.testing.assert_allclose(solid[0][:, 1], [1.1, 1.1 / 2, 1.1 / 3])
    assert read(figure).labels == ["aa:0.25  bb:0.75", "aa:0.5  bb:0.5"]
    assert to_svg(figure) == to_svg(draw_more_tasks(more_rows((1e4, 1e5, 1e6))))


def test_more_tasks_of_one_size_stand_against_their_predictions() -> None:
    figure = draw_more_tasks(more_rows((1e6,)), metric="chrf", unit="points")
    assert len(figure.axes) == 1
    assert figure.axes[0].get_xlabel() == "measured chrf (points)"
    assert len(figure.axes[0].containers) == 2
