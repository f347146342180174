"""Effective fractions of parameters over the weight."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from mnmt_laws.answers.effective import EffectiveFractions, fitted_fraction
from mnmt_laws.figures.style import MUTED, TASK_COLORS, handle, legend_below, styled
from mnmt_laws.fitting.law_fit import LawFit


@styled
def draw_fractions(*, task: str, effective: EffectiveFractions, capacity: LawFit) -> Figure:
    """f(p) of eq. 10 with 95% intervals, f̂(p) of eq. 12, and the diagonal f = p."""
    figure = Figure(figsize=(5.4, 4.5))
    axes = figure.subplots()
    weights = np.linspace(0, 1, 200)[1:]
    axes.plot([0, 1], [0, 1], "--", color=MUTED, lw=1.2)
    axes.plot(weights, fitted_fraction(capacity, task=task, weight=weights), color=TASK_COLORS[1])
    own = effective.fractions.sel(task=task).dropna("weight", subset=["value"])
    lower, upper = (own.interval.sel(bound=bound).values for bound in ("lower", "upper"))
    value = own.value.values
    spread = np.nan_to_num([np.maximum(value - lower, 0), np.maximum(upper - value, 0)])
    axes.errorbar(own.weight, value, yerr=spread, fmt="o", color=TASK_COLORS[0], capsize=3, lw=1.3, zorder=3)
    axes.set_xlim(-0.03, 1.03)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("weight p in the training mixture")
    axes.set_ylabel("effective fraction f(p) = N_eff / N")
    axes.set_title(task)
    keys = [
        handle("f(p), 95% interval", TASK_COLORS[0], marker="o"),
        handle("f̂(p), capacity law", TASK_COLORS[1], line="-"),
        handle("f = p", MUTED, line="--"),
    ]
    legend_below(figure, keys, columns=3)
    return figure
