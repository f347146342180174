"""Rival laws side by side, and intervals by several methods."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from mnmt_laws.figures.points import handle
from mnmt_laws.figures.style import INK, TASK_COLORS, legend_below, styled, task_color

_LAW_SPACING = 0.22  # of a row, between the dots of two tasks
SYMBOLS = {"alpha": "α", "beta": "β", "l_inf": "L∞", "c1": "c₁", "c2": "c₂", "c3": "c₃"}
_METHOD_SPACING = 0.2  # of a row, between two methods


@styled
def draw_comparison(table: pd.DataFrame, *, criterion: str = "bic") -> Figure:
    """Draw the information criterion above the best law's and errors on left-out runs, a row for each law.

    Args:
        table: A row for each (task, law), as `Comparison.table`: `task`, `law`, `label`, `bic` or `aic`,
            `size_error`, `weight_error`; NaN is left blank.
        criterion: `bic` or `aic`.

    Raises:
        ValueError: If the criterion is unknown.
    """
    if criterion not in ("aic", "bic"):
        raise ValueError(f"`criterion` must be aic or bic, but is {criterion!r}.")
    labels, tasks = list(dict.fromkeys(table["label"])), sorted(table["task"].unique())
    best = table.groupby("task")[criterion].transform("min")
    excess = table.assign(excess=table[criterion] - best)
    figure = Figure(figsize=(9.6, 1.7 + 0.55 * len(labels)))
    panels = figure.subplots(1, 3, sharey=True)
    titles = {"excess": f"Δ{criterion.upper()}", "size_error": "error at the largest size, left out",
              "weight_error": "error at weights left out"}  # fmt: skip
    for axes, (column, title) in zip(panels, titles.items(), strict=True):
        _law_panel(axes, excess, column, labels, tasks)
        axes.set_xlabel(title)
    panels[0].set_yticks(range(len(labels)), labels, color=INK)
    panels[0].set_ylim(len(labels) - 0.5, -0.5)
    panels[0].set_xscale("symlog", linthresh=2)
    panels[0].set_xlim(right=3 * max(2.0, excess["excess"].max()))
    panels[0].xaxis.set_major_locator(FixedLocator([0, 2, 10, 100, 1000, 10000]))
    panels[0].xaxis.set_minor_locator(NullLocator())
    panels[0].xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    legend_below(figure, [handle(task, task_color(task, tasks), marker="o") for task in tasks])
    return figure


def _law_panel(axes: Axes, table: pd.DataFrame, column: str, labels: list[str], tasks: list[str]) -> None:
    for row in table.dropna(subset=[column]).to_dict("records"):
        shift = (tasks.index(row["task"]) - (len(tasks) - 1) / 2) * _LAW_SPACING
        y, color = labels.index(row["label"]) + shift, task_color(row["task"], tasks)
        value = row[column] if column == "excess" else 100 * row[column]
        axes.plot([0, value], [y, y], color=color, lw=1.4, alpha=0.45)
        axes.plot(value, y, "o", color=color, ms=7, clip_on=False, zorder=3)
    axes.grid(visible=False, axis="y")
    axes.set_xlim(left=0)
    axes.tick_params(axis="y", length=0, pad=9)
    if column != "excess":
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}%")


@styled
def draw_intervals(table: pd.DataFrame) -> Figure:
    """Draw intervals of each parameter in a panel, a row for each task and an interval for each method.

    Args:
        table: Columns `task`, `parameter`, `method`, `estimate`, `lower` and `upper`; unknown bounds NaN.
    """
    parameters, methods = list(dict.fromkeys(table["parameter"])), list(dict.fromkeys(table["method"]))
    tasks = sorted(table["task"].unique())
    figure = Figure(figsize=(0.8 + 3.0 * len(parameters), 1.5 + 0.26 * len(tasks) * (len(methods) + 1)))
    panels = figure.subplots(1, len(parameters), sharey=True, squeeze=False)[0]
    for axes, parameter in zip(panels, parameters, strict=True):
        _interval_panel(axes, table[table["parameter"] == parameter], tasks, methods)
        axes.set_xlabel(SYMBOLS.get(parameter, parameter))
    panels[0].set_yticks(range(len(tasks)), tasks, color=INK)
    panels[0].set_ylim(len(tasks) - 0.5, -0.5)
    keys = [handle(method, _color(method, methods), line="-", marker="o") for method in methods]
    legend_below(figure, keys)
    return figure


def _interval_panel(axes: Axes, rows: pd.DataFrame, tasks: list[str], methods: list[str]) -> None:
    for row in rows.to_dict("records"):
        shift = (methods.index(row["method"]) - (len(methods) - 1) / 2) * _METHOD_SPACING
        y, color = tasks.index(row["task"]) + shift, _color(row["method"], methods)
        axes.plot([row["lower"], row["upper"]], [y, y], color=color, lw=2, marker="|", ms=7, mew=1.4)
        axes.plot(row["estimate"], y, "o", color=color, zorder=3)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.locator_params(axis="x", nbins=5)


def _color(method: str, methods: list[str]) -> str:
    return TASK_COLORS[methods.index(method) % len(TASK_COLORS)]
