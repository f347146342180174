"""Translation quality against loss."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from mnmt_laws.figures.style import TASK_COLORS, handle, legend_below, styled

QUALITY_NAMES = {"bleu": "BLEU", "chrf": "chrF"}


@styled
def draw_quality(quality: pd.DataFrame, metric: str) -> Figure:
    """A quality metric against loss, a point a (run, task); columns `task`, `loss` and `metric`."""
    figure = Figure(figsize=(5.4, 4.5))
    axes = figure.subplots()
    keys = []
    for color, (task, own) in zip(TASK_COLORS, quality.groupby("task"), strict=False):
        axes.plot(own["loss"], own[metric], "o", color=color, alpha=0.85)
        keys.append(handle(str(task), color, marker="o"))
    axes.set_xlabel("loss (nats per token)")
    axes.set_ylabel(QUALITY_NAMES.get(metric, metric))
    legend_below(figure, keys)
    return figure
