"""Held-out losses, predicted against measured."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mnmt_laws.answers.heldout import HeldOut
from mnmt_laws.figures.correction import correction_key, mark_corrected, point_marker
from mnmt_laws.figures.style import (
    diagonal,
    draw_point,
    handle,
    legend_below,
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
    """The capacity law's predictions of runs it was not fitted to; on the diagonal they are exact."""
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
