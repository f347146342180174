"""Intervals of parameters by several methods, side by side."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mnmt_laws.figures.style import INK, TASK_COLORS, handle, legend_below, styled

SYMBOLS = {"alpha": "α", "beta": "β", "l_inf": "L∞", "c1": "c₁", "c2": "c₂", "c3": "c₃"}
_SPACING = 0.2  # of a row, between two methods


@styled
def draw_intervals(table: pd.DataFrame) -> Figure:
    """One panel a parameter, a row a task, an interval a method.

    Args:
        table: Columns `task`, `parameter`, `method`, `estimate`, `lower` and `upper`; unknown bounds NaN.
    """
    parameters, methods = list(dict.fromkeys(table["parameter"])), list(dict.fromkeys(table["method"]))
    tasks = sorted(table["task"].unique())
    figure = Figure(figsize=(0.8 + 3.0 * len(parameters), 1.5 + 0.26 * len(tasks) * (len(methods) + 1)))
    panels = figure.subplots(1, len(parameters), sharey=True, squeeze=False)[0]
    for axes, parameter in zip(panels, parameters, strict=True):
        _panel(axes, table[table["parameter"] == parameter], tasks, methods)
        axes.set_xlabel(SYMBOLS.get(parameter, parameter))
    panels[0].set_yticks(range(len(tasks)), tasks, color=INK)
    panels[0].set_ylim(len(tasks) - 0.5, -0.5)
    keys = [handle(method, _color(method, methods), line="-", marker="o") for method in methods]
    legend_below(figure, keys)
    return figure


def _panel(axes: Axes, own: pd.DataFrame, tasks: list[str], methods: list[str]) -> None:
    for row in own.to_dict("records"):
        shift = (methods.index(row["method"]) - (len(methods) - 1) / 2) * _SPACING
        y, color = tasks.index(row["task"]) + shift, _color(row["method"], methods)
        axes.plot([row["lower"], row["upper"]], [y, y], color=color, lw=2, marker="|", ms=7, mew=1.4)
        axes.plot(row["estimate"], y, "o", color=color, zorder=3)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.locator_params(axis="x", nbins=5)


def _color(method: str, methods: list[str]) -> str:
    return TASK_COLORS[methods.index(method) % len(TASK_COLORS)]
