"""Figures: differences between models over their size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
import pandas as pd

from mnmt_laws.figures import marks
from mnmt_laws.figures.style import Chart, color, count_axis, styled, value_axis

SIZE = "model size N (non-embedding parameters)"


def draw_over_size(
    rows: pd.DataFrame,
    column: str,
    colors: Mapping[str, str],
    title: str,
    *,
    panels: Sequence[str],
    zero: bool = True,
) -> Chart:
    """Draw a line of points over size for each label, a panel for each task.

    Args:
        rows: Columns `label`, `task`, `size` and `column`.
        column: What is drawn.
        colors: The labels and their colours.
        title: What the column is, with its unit.
        panels: The tasks.
        zero: Whether a line marks no difference.
    """
    parts = [_panel(rows[rows["task"].eq(task)], column, colors, title, task, zero=zero) for task in panels]
    return styled(*parts, columns=len(panels))


def _panel(
    rows: pd.DataFrame, column: str, colors: Mapping[str, str], title: str, task: str, *, zero: bool
) -> alt.LayerChart:
    frame = marks.describe(rows, value=rows[column], line=rows["label"], kind="trained")
    x = count_axis("size", frame["size"], SIZE)
    values = pd.concat([frame["value"], pd.Series([0.0])]) if zero else frame["value"]
    y = value_axis("value", values, title, log=False)
    lines = marks.lines(frame[["size", "value", "line", "label"]], interpolate="linear")
    layers = [lines, marks.points(frame, label="model", value=column)]
    if zero:
        ends = [frame["size"].min(), frame["size"].max()]
        layers.insert(0, marks.reference(size=ends, value=[0.0, 0.0]))
    return marks.panel(*layers, x=x, y=y, color=color("label", [*colors], [*colors.values()]), title=task)
