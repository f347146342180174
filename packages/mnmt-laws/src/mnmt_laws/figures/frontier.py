"""The trade-off frontier of two tasks."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mnmt_laws.figures.style import (
    format_size,
    handle,
    legend_below,
    log_position,
    sequential,
    spread_axis,
    styled,
)
from mnmt_laws.frontier import frontier, observed_pairs, two_tasks
from mnmt_laws.results import LawFit


@styled
def draw_frontier(capacity: LawFit, *, sizes: Sequence[float]) -> Figure:
    """Predicted frontiers as lines, measured models as points, held-out ones hollow."""
    first, second = two_tasks(capacity)
    figure = Figure(figsize=(5.4, 5.2))
    axes = figure.subplots()
    pairs = observed_pairs(capacity.observations)
    low, high = min(sizes), max(sizes)
    keys = []
    for size in sizes:
        color = sequential(0.15 + 0.85 * log_position(size, low, high))
        predicted = frontier(capacity, size=size)
        axes.plot(predicted.sel(task=first), predicted.sel(task=second), color=color, zorder=2)
        _points(axes, pairs[pairs["size"] == size], first, second, color)
        keys.append(handle(f"N = {format_size(size)}", color, line="-"))
    if pairs.loc[pairs["size"].isin(sizes), "role"].eq("held-out").any():
        keys.append(handle("held out", marker="o", hollow=True))
    observations = capacity.observations
    axes.set_xlabel(f"{first} {observations.metric} ({observations.unit})")
    axes.set_ylabel(f"{second} {observations.metric} ({observations.unit})")
    for axis in (axes.xaxis, axes.yaxis):
        spread_axis(axis)
    legend_below(figure, keys, columns=4)
    return figure


def _points(axes: Axes, pairs: pd.DataFrame, first: str, second: str, color: tuple[float, ...]) -> None:
    for role, own in pairs.groupby("role"):
        face = "white" if role == "held-out" else color
        axes.plot(own[first], own[second], "o", color=color, mfc=face, mew=1.3, zorder=3)
