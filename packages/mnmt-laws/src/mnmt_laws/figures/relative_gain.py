"""How many times its share of the model a task has (Fernandes et al. 2023, fig. 6)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mnmt_laws.answers.effective import EffectiveFractions
from mnmt_laws.figures.style import MUTED, TASK_COLORS, handle, legend_below, spread_axis, styled

_MARKERS = "osD^vPX*"
_DODGE = 0.006  # of the axis, between the intervals of neighbours


@styled
def draw_relative_gain(sets: Mapping[str, EffectiveFractions], *, task: str | None = None) -> Figure:
    """f(p) / p over p with 95% intervals, for several sets side by side.

    Args:
        sets: Effective fractions by what tells them apart: test set, direction, language pair.
        task: The task drawn; by default every task of every set.

    Raises:
        ValueError: If no set knows the fractions of a task.
    """
    lines = _lines(sets, task)
    if not lines:
        raise ValueError("`sets` must hold known effective fractions; they need runs at weight 1.")
    figure = Figure(figsize=(5.4, 4.5))
    axes = figure.subplots()
    axes.axhline(1.0, color=MUTED, ls="--", lw=1.2)
    keys = []
    for number, (label, gain) in enumerate(lines.items()):
        color, marker = TASK_COLORS[number % len(TASK_COLORS)], _MARKERS[number % len(_MARKERS)]
        _draw_one(axes, gain, color, marker, shift=(number - (len(lines) - 1) / 2) * _DODGE)
        keys.append(handle(label, color, line="-", marker=marker))
    axes.set_xlim(-0.03, 1.03)
    spread_axis(axes.yaxis)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}×")
    axes.set(xlabel="weight p in the training mixture", ylabel="relative gain f(p) / p", title=task or "")
    legend_below(figure, [*keys, handle("f = p", line="--")], columns=3)
    return figure


def _lines(sets: Mapping[str, EffectiveFractions], task: str | None) -> dict[str, xr.Dataset]:
    """What is known of f(p) / p, by label."""
    found = {}
    for label, effective in sets.items():
        gains = effective.relative_gain
        for own in gains.task.values if task is None else [task]:
            named = [name for name in (label, str(own) if task is None else "") if name]
            known = gains.sel(task=own).dropna("weight", subset=["value"])
            if known.weight.size:
                found[", ".join(named)] = known
    return found


def _draw_one(axes: Axes, gain: xr.Dataset, color: str, marker: str, *, shift: float) -> None:
    value = gain["value"].to_numpy()
    lower, upper = (gain["interval"].sel(bound=bound).to_numpy() for bound in ("lower", "upper"))
    spread = np.nan_to_num([np.maximum(value - lower, 0), np.maximum(upper - value, 0)])
    spread[0] = np.minimum(spread[0], 0.9 * value)  # a logarithmic axis has no 0
    axes.errorbar(
        gain.weight + shift, value, yerr=spread, fmt=f"{marker}-", color=color, capsize=2.5, lw=1.2, zorder=3
    )
