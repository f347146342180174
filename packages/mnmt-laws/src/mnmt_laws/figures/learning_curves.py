"""Learning curves, and where their power laws are read."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mnmt_laws.figures.style import (
    CORRECTED,
    MUTED,
    draw_point,
    format_size,
    handle,
    legend_below,
    log_value_axis,
    sequential,
    styled,
)
from mnmt_laws.fitting.convergence import Curve


@styled
def draw_learning_curves(curves: Sequence[Curve], *, task: str, metric: str = "loss") -> Figure:
    """Values of a task over training steps, the fitted power law, and its value at the horizon.

    Solid lines end where the measurements do; dashed on, the law runs to the horizon. Values that were
    replaced by it carry the mark of corrected ones.

    Raises:
        ValueError: If no curve is of the task.
    """
    own = [curve for curve in curves if curve.task == task]
    if not own:
        raise ValueError(f"`curves` must hold a curve of {task}, but {len(curves)} are of other tasks.")
    figure = Figure(figsize=(5.4, 4.5))
    axes = figure.subplots()
    ranks = _ranks(own)
    keys = {}
    for curve in own:
        place = ranks[curve.size, curve.weight]
        color = sequential(0.1 + 0.9 * place)
        _draw_one(axes, curve, color)
        keys[place] = handle(f"N = {format_size(curve.size)}, p = {curve.weight:g}", color, line="-")
    for horizon in sorted({curve.horizon for curve in own}):
        axes.axvline(horizon, color=MUTED, lw=1.0, ls=":", zorder=1)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(format_size)
    log_value_axis(axes.yaxis)
    axes.set(xlabel="training step", ylabel=metric, title=task)
    legend_below(figure, [keys[place] for place in sorted(keys)] + _roles(own), columns=2)
    return figure


def _ranks(curves: Sequence[Curve]) -> dict[tuple[float, float], float]:
    """Position of each (size, weight) among all, in [0, 1]."""
    kinds = sorted({(curve.size, curve.weight) for curve in curves})
    return {kind: number / max(len(kinds) - 1, 1) for number, kind in enumerate(kinds)}


def _draw_one(axes: Axes, curve: Curve, color: tuple[float, ...]) -> None:
    axes.plot(curve.steps[curve.steps > 0], curve.values[curve.steps > 0], "o", color=color, ms=3, alpha=0.8)
    seen = curve.fitted_steps <= curve.steps.max()
    axes.plot(curve.fitted_steps[seen], curve.fitted_values[seen], color=color, lw=1.4)
    axes.plot(curve.fitted_steps[~seen], curve.fitted_values[~seen], "--", color=color, lw=1.2)
    marker = CORRECTED if curve.corrected else "o"
    draw_point(axes, curve.horizon, float(curve.fitted_values[-1]), color, marker=marker, hollow=True)


def _roles(curves: Sequence[Curve]) -> list[Line2D]:
    keys = [handle("power law", line="-"), handle("beyond training", line="--")]
    if any(curve.corrected for curve in curves):
        keys.append(handle("corrected for convergence", marker=CORRECTED, hollow=True))
    if not all(curve.corrected for curve in curves):
        keys.append(handle("converged", marker="o", hollow=True))
    return keys
