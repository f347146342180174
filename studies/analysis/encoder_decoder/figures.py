"""Figures: losses over the decoder's size, and differences that choices of training make."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from mnmt_laws import LawFit
from mnmt_laws.figures import marks
from mnmt_laws.figures.style import (
    MUTED,
    TASK_COLORS,
    Chart,
    color,
    count_axis,
    ramp,
    styled,
    value_axis,
)

_POINTS = 30  # of a line


def draw_grid(rows: pd.DataFrame, fitted: LawFit) -> Chart:
    """Draw losses over the decoder's size, a line of the bivariate law for each encoder, a panel a task."""
    return styled(
        *(_grid_panel(rows[rows["task"].eq(task)], fitted, task) for task in fitted.tasks), columns=2
    )


def _grid_panel(rows: pd.DataFrame, fitted: LawFit, task: str) -> alt.LayerChart:
    order = rows.drop_duplicates("encoder_layers").sort_values("encoder_layers")
    labels = {layers: f"encoder of {layers}" for layers in order["encoder_layers"]}
    span = np.geomspace(rows["decoder_size"].min(), rows["decoder_size"].max(), _POINTS)
    lines = pd.concat(
        pd.DataFrame({
            "decoder_size": span, "label": labels[layers], "line": labels[layers],
            "value": fitted.predict(task=task, encoder_size=size, decoder_size=span),
        })
        for layers, size in zip(order["encoder_layers"], order["encoder_size"], strict=True)
    )  # fmt: skip
    points = marks.describe(rows, label=rows["encoder_layers"].map(labels), kind="trained")
    points = points[["run", "decoder_size", "value", "label", "kind"]].assign(first=points["decoder_size"])
    layers = [marks.lines(lines), marks.points(points, value="loss", decoder_size="decoder size")]
    x = count_axis("decoder_size", span, "decoder size (parameters)")
    y = value_axis("value", pd.concat([rows["value"], lines["value"]]), "loss (nats per token)", log=False)
    key = color("label", [*labels.values()], ramp(len(labels)))
    return marks.panel(*layers, x=x, y=y, color=key, title=task)


def draw_choices(summary: pd.DataFrame) -> Chart:
    """Draw the mean difference of each choice with its interval, a panel for each task.

    Args:
        summary: As `summarise` returns it, of one test set.
    """
    panels = [_choices_panel(some, str(task)) for task, some in summary.groupby("task")]
    return styled(*panels, columns=2)


def _choices_panel(rows: pd.DataFrame, task: str) -> alt.LayerChart:
    widths = [*dict.fromkeys(rows["width"])]
    base = alt.Chart(marks.data(rows)).encode(yOffset=alt.YOffset("width:N", sort=widths))
    bars = base.mark_rule(strokeWidth=2, opacity=0.5).encode(x="lower:Q", x2="upper:Q")
    zero = alt.Chart(marks.data(pd.DataFrame({"difference": [0.0]}))).mark_rule(strokeDash=marks.DASHED)
    zero = zero.encode(y=alt.value(0), y2=alt.value("height"), color=alt.value(MUTED))
    titles = {"choice": "choice", "width": "width", "difference": "difference"}
    points = marks.with_tooltips(base.mark_point(filled=True, size=55), rows, titles)
    x = alt.X("difference:Q", title="loss less plain training's (nats per token)")
    y = alt.Y("choice:N", title=None, sort=[*dict.fromkeys(rows["choice"])])
    key = color("width", widths, TASK_COLORS[: len(widths)])
    return marks.panel(
        zero, bars, points, x=x, y=y, color=key, title=task, height=60 * rows["choice"].nunique()
    )
