"""Predictions beside measurements: held-out runs, and models of three and more tasks."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mnmt_laws.answers.predictions import HeldOut
from mnmt_laws.figures.points import correction_key, draw_point, handle, mark_corrected, point_marker
from mnmt_laws.figures.style import (
    diagonal,
    format_size,
    legend_below,
    log_size_axis,
    sequential,
    spread_axis,
    styled,
    task_color,
)
from mnmt_laws.tables.observations import Observations

_MARKERS = {
    (False, False): ("o", "known weight and size"),
    (True, False): ("s", "new weight"),
    (False, True): ("^", "new size"),
    (True, True): ("P", "new weight and size"),
}


@styled
def draw_held_out(held_out: HeldOut, observations: Observations) -> Figure:
    """Draw the capacity law's predictions of held-out runs; on the diagonal they are exact."""
    figure = Figure(figsize=(5.4, 5.2))
    axes = figure.subplots()
    rows = mark_corrected(held_out.rows, observations.frame)
    tasks = sorted(rows["task"].unique())
    _points(axes, rows, tasks)
    diagonal(axes, rows[["observed", "capacity"]].to_numpy())
    axes.set_xlabel(f"measured {observations.metric} ({observations.unit})")
    axes.set_ylabel(f"predicted {observations.metric} ({observations.unit})")
    for axis in (axes.xaxis, axes.yaxis):
        spread_axis(axis)
    kinds = rows[["new_weight", "new_size"]].drop_duplicates().itertuples(index=False, name=None)
    keys = [handle(task, task_color(task, tasks), marker="o") for task in tasks]
    keys += [handle(_MARKERS[kind][1], marker=_MARKERS[kind][0]) for kind in kinds]
    legend_below(figure, keys + correction_key(rows["corrected"]), columns=3)
    return figure


def _points(axes: Axes, rows: pd.DataFrame, tasks: list[str]) -> None:
    for row in rows.to_dict("records"):
        kind = _MARKERS[bool(row["new_weight"]), bool(row["new_size"])][0]
        marker = point_marker(corrected=row["corrected"], otherwise=kind)
        draw_point(axes, row["observed"], row["capacity"], task_color(row["task"], tasks), marker=marker)


@styled
def draw_more_tasks(rows: pd.DataFrame, *, metric: str = "loss", unit: str = "nats per token") -> Figure:
    """Draw measured values over size with each mixture's predicted line, or against predictions at one size.

    Args:
        rows: A row for each (run, task), as `MoreTasks.rows`: `run`, `task`, `size`, `weight`, `mixture`,
            `observed`, `predicted`, `lower`, `upper`.
        metric: What was measured.
        unit: Its unit.
    """
    draw = _over_size if rows["size"].nunique() > 1 else _against_predicted
    return draw(rows, f"{metric} ({unit})")


def _over_size(rows: pd.DataFrame, label: str) -> Figure:
    tasks, mixtures = sorted(rows["task"].unique()), sorted(rows["mixture"].unique())
    columns = min(len(tasks), 3)
    lines = -(-len(tasks) // columns)
    figure = Figure(figsize=(0.6 + 3.3 * columns, 1.3 + 2.9 * lines + 0.22 * len(mixtures)))
    panels = np.atleast_1d(figure.subplots(lines, columns, squeeze=False)).ravel()
    for axes, task in zip(panels, tasks, strict=False):
        _panel(axes, rows[rows["task"] == task], mixtures)
        axes.set_title(task)
    for axes in panels[len(tasks) :]:
        axes.set_axis_off()
    panels[0].set_ylabel(label)
    keys = [
        handle(mixture.replace(",", "  "), _mixture_color(mixture, mixtures), line="-", marker="o")
        for mixture in mixtures
    ]
    legend_below(figure, keys, columns=1 if columns == 1 else 2)
    return figure


def _panel(axes: Axes, rows: pd.DataFrame, mixtures: list[str]) -> None:
    for mixture, points in rows.sort_values("size").groupby("mixture"):
        color = _mixture_color(str(mixture), mixtures)
        line = points.drop_duplicates("size")
        axes.fill_between(line["size"], line["lower"], line["upper"], color=color, alpha=0.16, lw=0)
        axes.plot(line["size"], line["predicted"], color=color)
        axes.plot(points["size"], points["observed"], "o", color=color, mew=1.3, zorder=3)
    log_size_axis(axes, rows["size"].min(), rows["size"].max())
    axes.set_xlabel("N (non-embedding parameters)")


def _mixture_color(mixture: str, mixtures: list[str]) -> tuple[float, ...]:
    return sequential(0.15 + 0.85 * mixtures.index(mixture) / max(len(mixtures) - 1, 1))


def _against_predicted(rows: pd.DataFrame, label: str) -> Figure:
    figure = Figure(figsize=(5.4, 5.2))
    axes = figure.subplots()
    tasks = sorted(rows["task"].unique())
    for task in tasks:
        task_rows, color = rows[rows["task"] == task], task_color(task, tasks)
        spread = np.nan_to_num(
            [task_rows["predicted"] - task_rows["lower"], task_rows["upper"] - task_rows["predicted"]]
        )
        points = {"x": task_rows["observed"], "y": task_rows["predicted"], "yerr": np.maximum(spread, 0)}
        axes.errorbar(**points, fmt="o", color=color, capsize=3, lw=1.3)
    diagonal(axes, rows[["observed", "predicted"]].to_numpy())
    for axis in (axes.xaxis, axes.yaxis):
        spread_axis(axis)
    axes.set(xlabel=f"measured {label}", ylabel=f"predicted {label}")
    axes.set_title(f"N = {format_size(rows['size'].iloc[0])}")
    legend_below(figure, [handle(task, task_color(task, tasks), marker="o") for task in tasks])
    return figure
