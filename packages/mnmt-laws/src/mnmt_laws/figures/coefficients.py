"""Coefficients of the per-weighting laws over the weight."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mnmt_laws.figures.style import TASK_COLORS, handle, legend_below, log_value_axis, styled
from mnmt_laws.fitting.law_fit import LawFit

_COLOR = TASK_COLORS[0]


@styled
def draw_coefficients(
    *, task: str, per_weighting: LawFit, joint: LawFit, irreducible: float = math.nan
) -> Figure:
    """α, L∞ and β of each weight's own law, ± one standard deviation, beside the joint law's."""
    figure = Figure(figsize=(5.4, 6.6))
    panels = figure.subplots(3, sharex=True)
    unit = per_weighting.observations.unit
    labels = {"alpha": "exponent α", "l_inf": f"limit L∞ ({unit})", "beta": "factor β"}
    for axes, (name, label) in zip(panels, labels.items(), strict=True):
        _draw_one(axes, name, task, per_weighting, joint)
        axes.set_ylabel(label)
    if math.isfinite(irreducible):
        panels[1].axhline(irreducible, color=TASK_COLORS[1], ls=":", lw=1.6)
    log_value_axis(panels[2].yaxis)
    panels[0].set_title(task)
    panels[2].set_xlabel("weight p in the training mixture")
    panels[2].set_xlim(-0.03, 1.03)
    figure.align_ylabels(panels)
    _legend(figure, known=math.isfinite(irreducible))
    return figure


def _draw_one(axes: Axes, name: str, task: str, per_weighting: LawFit, joint: LawFit) -> None:
    own = per_weighting.parameters[name].sel(task=task).dropna("weight")
    std = per_weighting.std[name].sel(task=task, weight=own.weight).fillna(0)
    low, high = own.values - std.values, own.values + std.values
    if name == "beta":
        low = np.maximum(low, own.values / 10)  # a logarithmic axis has no 0
    low = np.maximum(low, 0.0)
    axes.fill_between(own.weight, low, high, color=_COLOR, alpha=0.16, lw=0)
    axes.plot(own.weight, own.values, "o-", color=_COLOR)
    shared = joint.parameters[name].sel(task=task)
    if name == "beta":
        shared = shared.dropna("weight")
        axes.plot(shared.weight, shared.values, "--", color="#1d2433", lw=1.3)
    else:
        axes.axhline(float(shared), color="#1d2433", ls="--", lw=1.3)


def _legend(figure: Figure, *, known: bool) -> None:
    keys = [
        handle("each weight alone, ± 1 std", _COLOR, line="-", marker="o"),
        handle("joint law", "#1d2433", line="--"),
    ]
    if known:
        keys.append(handle("true limit", TASK_COLORS[1], line=":"))
    legend_below(figure, keys, columns=3)
