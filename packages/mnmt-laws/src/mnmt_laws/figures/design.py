"""Runs that exist, and runs proposed next."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from mnmt_laws.figures.style import MUTED, TASK_COLORS, handle, legend_below, log_size_axis, styled


@styled
def draw_design(*, existing: pd.DataFrame, proposed: pd.DataFrame, task: str = "") -> Figure:
    """Run on the plane of size and weight: existing ones as dots, proposed ones as numbered rings.

    Args:
        existing: Columns `size` and `weight`.
        proposed: The same, and `order`: which to train first; runs in one place share a ring.
        task: Whose weight it is.
    """
    figure = Figure(figsize=(5.4, 4.5))
    axes = figure.subplots()
    axes.plot(existing["size"], existing["weight"], "o", color=MUTED, ms=5, alpha=0.75)
    for _, own in proposed.sort_values("order").groupby(["size", "weight"]):
        _ring(axes, own)
    sizes = pd.concat([existing["size"], proposed["size"]])
    log_size_axis(axes, sizes.min() / 1.2, sizes.max() * 1.2)
    axes.set_ylim(-0.05, 1.05)
    axes.set_ylabel(f"weight p of {task}" if task else "weight p in the training mixture")
    keys = [
        handle("trained", marker="o"),
        handle("proposed, in this order", TASK_COLORS[1], marker="o", hollow=True),
    ]
    legend_below(figure, keys)
    return figure


def _ring(axes: Axes, own: pd.DataFrame) -> None:
    """The runs proposed at one place, their order beside the ring."""
    place = (own["size"].iloc[0], own["weight"].iloc[0])
    axes.plot(*place, "o", color=TASK_COLORS[1], mfc="none", ms=11, mew=1.6, zorder=3)
    axes.annotate(
        ", ".join(f"{order:g}" for order in own["order"]),
        place,
        (9, 0),
        textcoords="offset points",
        va="center",
        fontweight="bold",
        color=TASK_COLORS[1],
        path_effects=[withStroke(linewidth=3, foreground="white")],
        zorder=4,
    )
