"""Translation quality against loss."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mnmt_laws.figures.correction import corrected_rows, correction_key, point_marker
from mnmt_laws.figures.style import draw_point, handle, legend_below, styled, task_color

QUALITY_NAMES = {"bleu": "BLEU", "chrf": "chrF", "bleurt": "BLEURT"}


@styled
def draw_quality(quality: pd.DataFrame, metric: str, lines: pd.DataFrame | None = None) -> Figure:
    """A quality metric against loss, a point a (run, task), with the line of each task.

    Args:
        quality: Columns `task`, `loss` and `metric`; `corrected` where losses were.
        metric: A column of it.
        lines: Metric = intercept + slope · loss: columns `task`, `slope`, `intercept` and `r`.
    """
    figure = Figure(figsize=(5.4, 4.5))
    axes = figure.subplots()
    known = quality.dropna(subset=["loss", metric])
    tasks, keys = sorted(known["task"].unique()), []
    for task in tasks:
        own, color = known[known["task"] == task], task_color(task, tasks)
        for loss, value, corrected in zip(own["loss"], own[metric], corrected_rows(own), strict=True):
            draw_point(axes, loss, value, color, marker=point_marker(corrected=corrected))
        line = None if lines is None else lines[lines["task"] == task]
        if line is None or line.empty:
            keys.append(handle(task, color, marker="o"))
            continue
        _line(axes, own["loss"], line.iloc[0], color)
        keys.append(
            handle(f"{task}, r = {line['r'].iloc[0]:.3f}".replace("-0", "−0"), color, marker="o", line="-")
        )
    axes.set_xlabel("loss (nats per token)")
    axes.set_ylabel(QUALITY_NAMES.get(metric, metric))
    legend_below(figure, keys + correction_key(corrected_rows(known)), columns=3)
    return figure


def _line(axes: Axes, losses: pd.Series, line: pd.Series, color: str) -> None:
    ends = np.array([losses.min(), losses.max()])
    axes.plot(ends, line["intercept"] + line["slope"] * ends, color=color, lw=1.3, zorder=2)
