"""Losses over size and over training, and translation quality against loss."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mnmt_laws.figures.points import (
    CORRECTED,
    corrected_rows,
    correction_key,
    draw_point,
    handle,
    point_marker,
)
from mnmt_laws.figures.style import (
    MUTED,
    format_size,
    legend_below,
    log_size_axis,
    log_value_axis,
    sequential,
    styled,
    task_color,
)
from mnmt_laws.fitting.convergence import Curve
from mnmt_laws.fitting.law_fit import LawFit

PANEL = (5.4, 4.5)
QUALITY_NAMES = {"bleu": "BLEU", "chrf": "chrF", "bleurt": "BLEURT"}


@styled
def draw_losses(*, task: str, per_weighting: LawFit, joint: LawFit, capacity: LawFit) -> Figure:
    """Draw a task's values over size with the per-weighting, joint and (at unseen weights) capacity laws."""
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
    """Draw the loss above the joint L∞, where laws of one exponent are parallel lines."""
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


@styled
def draw_learning_curves(curves: Sequence[Curve], *, task: str, metric: str = "loss") -> Figure:
    """Draw a task's values over training steps, the fitted power laws, and their values at the horizon.

    A line is solid as far as the measurements go, and dashed from there to the horizon. Values that the
    law replaced carry the mark of corrected ones.

    Raises:
        ValueError: If no curve is of the task.
    """
    task_curves = [curve for curve in curves if curve.task == task]
    if not task_curves:
        raise ValueError(f"`curves` must hold a curve of {task}, but {len(curves)} are of other tasks.")
    figure = Figure(figsize=(5.4, 4.5))
    axes = figure.subplots()
    ranks = _ranks(task_curves)
    keys = {}
    for curve in task_curves:
        rank = ranks[curve.size, curve.weight]
        color = sequential(0.1 + 0.9 * rank)
        _draw_curve(axes, curve, color)
        keys[rank] = handle(f"N = {format_size(curve.size)}, p = {curve.weight:g}", color, line="-")
    for horizon in sorted({curve.horizon for curve in task_curves}):
        axes.axvline(horizon, color=MUTED, lw=1.0, ls=":", zorder=1)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(format_size)
    log_value_axis(axes.yaxis)
    axes.set(xlabel="training step", ylabel=metric, title=task)
    legend_below(figure, [keys[rank] for rank in sorted(keys)] + _curve_keys(task_curves), columns=2)
    return figure


def _ranks(curves: Sequence[Curve]) -> dict[tuple[float, float], float]:
    """Return the position of each (size, weight) among all, in [0, 1]."""
    kinds = sorted({(curve.size, curve.weight) for curve in curves})
    return {kind: number / max(len(kinds) - 1, 1) for number, kind in enumerate(kinds)}


def _draw_curve(axes: Axes, curve: Curve, color: tuple[float, ...]) -> None:
    axes.plot(curve.steps[curve.steps > 0], curve.values[curve.steps > 0], "o", color=color, ms=3, alpha=0.8)
    measured = curve.fitted_steps <= curve.steps.max()
    axes.plot(curve.fitted_steps[measured], curve.fitted_values[measured], color=color, lw=1.4)
    axes.plot(curve.fitted_steps[~measured], curve.fitted_values[~measured], "--", color=color, lw=1.2)
    marker = CORRECTED if curve.corrected else "o"
    draw_point(axes, curve.horizon, float(curve.fitted_values[-1]), color, marker=marker, hollow=True)


def _curve_keys(curves: Sequence[Curve]) -> list[Line2D]:
    keys = [handle("power law", line="-"), handle("beyond training", line="--")]
    if any(curve.corrected for curve in curves):
        keys.append(handle("corrected for convergence", marker=CORRECTED, hollow=True))
    if not all(curve.corrected for curve in curves):
        keys.append(handle("converged", marker="o", hollow=True))
    return keys


@styled
def draw_quality(quality: pd.DataFrame, metric: str, lines: pd.DataFrame | None = None) -> Figure:
    """Draw a quality metric against loss, a point for each run and task, with the line of each task.

    Args:
        quality: Columns `task`, `loss` and `metric`; `corrected` where losses were.
        metric: A column of it.
        lines: Metric = intercept + slope · loss: columns `task`, `slope`, `intercept` and `r`.
    """
    figure = Figure(figsize=(5.4, 4.5))
    axes = figure.subplots()
    pairs = quality.dropna(subset=["loss", metric])
    tasks, keys = sorted(pairs["task"].unique()), []
    for task in tasks:
        task_pairs, color = pairs[pairs["task"] == task], task_color(task, tasks)
        for loss, value, corrected in zip(
            task_pairs["loss"], task_pairs[metric], corrected_rows(task_pairs), strict=True
        ):
            draw_point(axes, loss, value, color, marker=point_marker(corrected=corrected))
        line = None if lines is None else lines[lines["task"] == task]
        if line is None or line.empty:
            keys.append(handle(task, color, marker="o"))
            continue
        _line(axes, task_pairs["loss"], line.iloc[0], color)
        keys.append(
            handle(f"{task}, r = {line['r'].iloc[0]:.3f}".replace("-0", "−0"), color, marker="o", line="-")
        )
    axes.set_xlabel("loss (nats per token)")
    axes.set_ylabel(QUALITY_NAMES.get(metric, metric))
    legend_below(figure, keys + correction_key(corrected_rows(pairs)), columns=3)
    return figure


def _line(axes: Axes, losses: pd.Series, line: pd.Series, color: str) -> None:
    ends = np.array([losses.min(), losses.max()])
    axes.plot(ends, line["intercept"] + line["slope"] * ends, color=color, lw=1.3, zorder=2)
