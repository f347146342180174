"""Laws compared by what the mixture acts through."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from mnmt_laws.figures.style import INK, handle, legend_below, styled, task_color

_SPACING = 0.22  # of a row, between the dots of two tasks


@styled
def draw_comparison(table: pd.DataFrame, *, criterion: str = "bic") -> Figure:
    """The information criterion above the best law's, and errors on what was left out, a row a law.

    Args:
        table: A row a (task, law), as `Comparison.table`: `task`, `law`, `label`, `bic` or `aic`,
            `size_error`, `weight_error`; NaN is left blank.
        criterion: `bic` or `aic`.

    Raises:
        ValueError: If the criterion is unknown.
    """
    if criterion not in ("aic", "bic"):
        raise ValueError(f"`criterion` must be aic or bic, but is {criterion!r}.")
    labels, tasks = list(dict.fromkeys(table["label"])), sorted(table["task"].unique())
    best = table.groupby("task")[criterion].transform("min")
    shown = table.assign(excess=table[criterion] - best)
    figure = Figure(figsize=(9.6, 1.7 + 0.55 * len(labels)))
    panels = figure.subplots(1, 3, sharey=True)
    titles = {"excess": f"Δ{criterion.upper()}", "size_error": "error at the largest size, left out",
              "weight_error": "error at weights left out"}  # fmt: skip
    for axes, (column, title) in zip(panels, titles.items(), strict=True):
        _panel(axes, shown, column, labels, tasks)
        axes.set_xlabel(title)
    panels[0].set_yticks(range(len(labels)), labels, color=INK)
    panels[0].set_ylim(len(labels) - 0.5, -0.5)
    panels[0].set_xscale("symlog", linthresh=2)
    panels[0].set_xlim(right=3 * max(2.0, shown["excess"].max()))
    panels[0].xaxis.set_major_locator(FixedLocator([0, 2, 10, 100, 1000, 10000]))
    panels[0].xaxis.set_minor_locator(NullLocator())
    panels[0].xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    legend_below(figure, [handle(task, task_color(task, tasks), marker="o") for task in tasks])
    return figure


def _panel(axes: Axes, table: pd.DataFrame, column: str, labels: list[str], tasks: list[str]) -> None:
    for row in table.dropna(subset=[column]).to_dict("records"):
        shift = (tasks.index(row["task"]) - (len(tasks) - 1) / 2) * _SPACING
        y, color = labels.index(row["label"]) + shift, task_color(row["task"], tasks)
        value = row[column] if column == "excess" else 100 * row[column]
        axes.plot([0, value], [y, y], color=color, lw=1.4, alpha=0.45)
        axes.plot(value, y, "o", color=color, ms=7, clip_on=False, zorder=3)
    axes.grid(visible=False, axis="y")
    axes.set_xlim(left=0)
    axes.tick_params(axis="y", length=0, pad=9)
    if column != "excess":
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}%")
