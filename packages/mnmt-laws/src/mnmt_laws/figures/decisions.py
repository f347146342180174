"""The trade-off frontier of two tasks, and the runs to train next."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from mnmt_laws.answers.frontier import frontier
from mnmt_laws.answers.next_runs import Design
from mnmt_laws.errors import TableError
from mnmt_laws.figures.points import correction_key, draw_point, handle, marked_pairs, point_marker
from mnmt_laws.figures.style import (
    MUTED,
    TASK_COLORS,
    format_size,
    legend_below,
    log_position,
    log_size_axis,
    sequential,
    spread_axis,
    styled,
)
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.tables.observations import Observations


@styled
def draw_frontier(capacity: LawFit, *, sizes: Sequence[float]) -> Figure:
    """Draw predicted frontiers as lines and measured models as points; hollow ones were held out.

    Raises:
        TableError: If the fit does not hold two tasks.
    """
    first, second = _two_tasks(capacity)
    figure = Figure(figsize=(5.4, 5.2))
    axes = figure.subplots()
    pairs = marked_pairs(capacity.observations)
    shown_pairs = pairs[pairs["size"].isin(sizes)]
    low, high = min(sizes), max(sizes)
    keys = []
    for size in sizes:
        color = sequential(0.15 + 0.85 * log_position(size, low, high))
        predicted = frontier(capacity, size=size).value
        axes.plot(predicted.sel(task=first), predicted.sel(task=second), color=color, zorder=2)
        _points(axes, pairs[pairs["size"] == size], first, second, color)
        keys.append(handle(f"N = {format_size(size)}", color, line="-"))
    if shown_pairs["role"].eq("held-out").any():
        keys.append(handle("held out", marker="o", hollow=True))
    keys += correction_key(shown_pairs["corrected"])
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


@styled
def draw_design(design: Design, observations: Observations, *, task: str) -> Figure:
    """Draw trained runs as dots and proposed runs as numbered rings, over size and the task's weight.

    Runs in one place share a ring. The numbers are the order in which to train them.
    """
    trained = observations.frame[observations.frame["task"] == task]
    proposed = _proposed_runs(design, task)
    figure = Figure(figsize=(5.4, 4.5))
    axes = figure.subplots()
    axes.plot(trained["size"], trained["weight"], "o", color=MUTED, ms=5, alpha=0.75)
    for _, runs in proposed.groupby(["size", "weight"]):
        _draw_ring(axes, runs)
    sizes = pd.concat([trained["size"], proposed["size"]])
    log_size_axis(axes, sizes.min() / 1.2, sizes.max() * 1.2)
    axes.set_ylim(-0.05, 1.05)
    axes.set_ylabel(f"weight p of {task}")
    keys = [
        handle("trained", marker="o"),
        handle("proposed, in this order", TASK_COLORS[1], marker="o", hollow=True),
    ]
    legend_below(figure, keys)
    return figure


def _proposed_runs(design: Design, task: str) -> pd.DataFrame:
    """Return `size`, `weight` of the task and `order` of every proposed run."""
    weights = [_weight_of(task, mixture) for mixture in design.runs["mixture"]]
    return pd.DataFrame({"size": design.runs["size"], "weight": weights, "order": range(1, len(weights) + 1)})


def _weight_of(task: str, mixture: str) -> float:
    """Return a task's weight in `TASK:WEIGHT` items, which are rounded and need not sum to 1."""
    items = (item.rsplit(":", 1) for item in mixture.split(","))
    return next((float(weight) for name, weight in items if name == task), 0.0)


def _draw_ring(axes: Axes, runs: pd.DataFrame) -> None:
    """Draw the ring of the runs proposed at one place, with their order beside it."""
    place = (runs["size"].iloc[0], runs["weight"].iloc[0])
    axes.plot(*place, "o", color=TASK_COLORS[1], mfc="none", ms=11, mew=1.6, zorder=3)
    axes.annotate(
        ", ".join(f"{order:g}" for order in runs["order"]),
        place,
        (9, 0),
        textcoords="offset points",
        va="center",
        fontweight="bold",
        color=TASK_COLORS[1],
        path_effects=[withStroke(linewidth=3, foreground="white")],
        zorder=4,
    )
