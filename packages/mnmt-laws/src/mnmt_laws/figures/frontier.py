"""The trade-off frontier of two tasks."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mnmt_laws.answers.frontier import frontier
from mnmt_laws.errors import TableError
from mnmt_laws.figures.correction import correction_key, marked_pairs, point_marker
from mnmt_laws.figures.style import (
    draw_point,
    format_size,
    handle,
    legend_below,
    log_position,
    sequential,
    spread_axis,
    styled,
)
from mnmt_laws.fitting.law_fit import LawFit


@styled
def draw_frontier(capacity: LawFit, *, sizes: Sequence[float]) -> Figure:
    """Predicted frontiers as lines, measured models as points, held-out ones hollow.

    Raises:
        TableError: If the fit does not hold two tasks.
    """
    first, second = _two_tasks(capacity)
    figure = Figure(figsize=(5.4, 5.2))
    axes = figure.subplots()
    pairs = marked_pairs(capacity.observations)
    drawn = pairs[pairs["size"].isin(sizes)]
    low, high = min(sizes), max(sizes)
    keys = []
    for size in sizes:
        color = sequential(0.15 + 0.85 * log_position(size, low, high))
        predicted = frontier(capacity, size=size).value
        axes.plot(predicted.sel(task=first), predicted.sel(task=second), color=color, zorder=2)
        _points(axes, pairs[pairs["size"] == size], first, second, color)
        keys.append(handle(f"N = {format_size(size)}", color, line="-"))
    if drawn["role"].eq("held-out").any():
        keys.append(handle("held out", marker="o", hollow=True))
    keys += correction_key(drawn["corrected"])
    observations = capacity.observations
    axes.set_xlabel(f"{first} {observations.metric} ({observations.unit})")
    axes.set_ylabel(f"{second} {observations.metric} ({observations.unit})")
    for axis in (axes.xaxis, axes.yaxis):
        spread_axis(axis)
    legend_below(figure, keys, columns=4)
    return figure


def _two_tasks(fit: LawFit) -> tuple[str, str]:
    if len(fit.tasks) != 2:
        raise TableError(
            f"{fit.observations.source}: a frontier is drawn of two tasks, but the table has "
            f"{len(fit.tasks)} ({', '.join(fit.tasks)})."
        )
    return fit.tasks[0], fit.tasks[1]


def _points(axes: Axes, pairs: pd.DataFrame, first: str, second: str, color: tuple[float, ...]) -> None:
    for x, y, role, corrected in zip(
        pairs[first], pairs[second], pairs["role"], pairs["corrected"], strict=True
    ):
        marker = point_marker(corrected=corrected)
        draw_point(axes, x, y, color, marker=marker, hollow=role == "held-out")
