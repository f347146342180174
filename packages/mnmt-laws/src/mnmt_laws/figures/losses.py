"""Losses against size, with the fitted laws."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mnmt_laws.figures.correction import corrected_rows, correction_key, point_marker
from mnmt_laws.figures.style import (
    draw_point,
    handle,
    legend_below,
    log_size_axis,
    log_value_axis,
    sequential,
    styled,
)
from mnmt_laws.fitting.law_fit import LawFit

PANEL = (5.4, 4.5)


@styled
def draw_losses(*, task: str, per_weighting: LawFit, joint: LawFit, capacity: LawFit) -> Figure:
    """Measured values of a task with the per-weighting, joint and (at unseen weights) capacity laws."""
    figure = Figure(figsize=PANEL)
    axes = figure.subplots()
    rows = _rows(joint, task)
    sizes = np.geomspace(rows["size"].min(), rows["size"].max(), 120)
    for weight in sorted(rows["weight"].unique()):
        color = sequential(weight)
        for fit, style in ((per_weighting, ":"), (joint, "-")):
            if weight in fit.fitted_weights(task):
                axes.plot(sizes, fit.predict(size=sizes, task=task, weight=weight), style, color=color)
        if weight not in joint.fitted_weights(task):
            axes.plot(
                sizes, capacity.predict(size=sizes, task=task, weight=weight), "--", color=color, lw=1.2
            )
    _points(axes, rows, rows["value"])
    log_size_axis(axes, sizes[0], sizes[-1])
    observations = joint.observations
    axes.set_ylabel(f"{observations.metric} ({observations.unit})")
    axes.set_title(task)
    keys = [handle("joint law", line="-"), handle("each alone", line=":")]
    _legend(figure, rows, keys)
    return figure


@styled
def draw_parallels(*, task: str, joint: LawFit) -> Figure:
    """What is left of the loss above the joint L∞, where laws of one exponent are parallel lines."""
    figure = Figure(figsize=PANEL)
    axes = figure.subplots()
    rows, sign = _rows(joint, task), -1 if joint.observations.rising else 1
    limit = float(joint.parameters.l_inf.sel(task=task))
    sizes = np.geomspace(rows["size"].min(), rows["size"].max(), 2)
    for weight in joint.fitted_weights(task):
        line = sign * (joint.predict(size=sizes, task=task, weight=weight) - limit)
        axes.plot(sizes, line, color=sequential(weight))
    excess = sign * (rows["value"] - limit)
    _points(axes, rows[excess > 0], excess[excess > 0])
    log_size_axis(axes, sizes[0], sizes[-1])
    log_value_axis(axes.yaxis)
    axes.set_ylabel(f"{joint.observations.metric} − L∞ ({joint.observations.unit})")
    axes.set_title(f"{task}: slope −{float(joint.parameters.alpha.sel(task=task)):.3f}")
    _legend(figure, rows, [handle("joint law", line="-")])
    return figure


def _rows(fit: LawFit, task: str) -> pd.DataFrame:
    rows = pd.concat([fit.observations.fit, fit.observations.held_out])
    rows = rows[rows["task"] == task].reset_index(drop=True)
    return rows.assign(corrected=corrected_rows(rows))


def _points(axes: Axes, rows: pd.DataFrame, values: pd.Series) -> None:
    columns = (rows["size"], rows["weight"], rows["role"], rows["corrected"], values)
    for size, weight, role, corrected, value in zip(*columns, strict=True):
        marker = point_marker(corrected=corrected)
        draw_point(axes, size, value, sequential(weight), marker=marker, hollow=role == "held-out")


def _legend(figure: Figure, rows: pd.DataFrame, keys: list[Line2D]) -> None:
    weights = [
        handle(f"p = {weight:g}", sequential(weight), marker="o")
        for weight in sorted(rows["weight"].unique())
    ]
    if rows["role"].eq("held-out").any():
        keys = [*keys, handle("held out", marker="o", hollow=True)]
    legend_below(figure, [*weights, *keys, *correction_key(rows["corrected"])])
