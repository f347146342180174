"""Held-out losses, predicted against measured."""

from __future__ import annotations

from matplotlib.figure import Figure

from mnmt_laws.figures.style import MUTED, TASK_COLORS, handle, legend_below, spread_axis, styled
from mnmt_laws.heldout import HeldOut
from mnmt_laws.observations import Observations

_MARKERS = {
    (False, False): ("o", "known weight and size"),
    (True, False): ("s", "new weight"),
    (False, True): ("^", "new size"),
    (True, True): ("D", "new weight and size"),
}


@styled
def draw_held_out(held_out: HeldOut, observations: Observations) -> Figure:
    """The capacity law's predictions of runs it was not fitted to; on the diagonal they are exact."""
    figure = Figure(figsize=(5.4, 5.2))
    axes = figure.subplots()
    rows, kinds = held_out.rows, []
    tasks = sorted(rows["task"].unique())
    for (task, new_weight, new_size), own in rows.groupby(["task", "new_weight", "new_size"]):
        marker, label = _MARKERS[bool(new_weight), bool(new_size)]
        color = TASK_COLORS[tasks.index(task) % len(TASK_COLORS)]
        axes.plot(own["observed"], own["capacity"], marker, color=color, ms=7, alpha=0.9)
        kinds.append((marker, label))
    span = [rows[["observed", "capacity"]].min().min(), rows[["observed", "capacity"]].max().max()]
    margin = max(span[1] / span[0], 1.01) ** 0.06
    span = [span[0] / margin, span[1] * margin]
    axes.plot(span, span, "--", color=MUTED, lw=1.2, zorder=1)
    axes.set(xlim=span, ylim=span)
    axes.set_xlabel(f"measured {observations.metric} ({observations.unit})")
    axes.set_ylabel(f"predicted {observations.metric} ({observations.unit})")
    for axis in (axes.xaxis, axes.yaxis):
        spread_axis(axis)
    colors = zip(tasks, TASK_COLORS, strict=False)
    keys = [handle(str(task), color, marker="o") for task, color in colors]
    legend_below(
        figure, keys + [handle(label, marker=marker) for marker, label in dict.fromkeys(kinds)], columns=3
    )
    return figure
