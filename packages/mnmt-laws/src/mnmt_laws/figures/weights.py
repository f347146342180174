"""What changes with the weight: the coefficients of the laws, effective fractions and the relative gain."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mnmt_laws.answers.fractions import EffectiveFractions, fitted_fraction
from mnmt_laws.figures.points import handle
from mnmt_laws.figures.style import MUTED, TASK_COLORS, legend_below, log_value_axis, spread_axis, styled
from mnmt_laws.fitting.law_fit import LawFit

_COLOR = TASK_COLORS[0]
_MARKERS = "osD^vPX*"
_DODGE = 0.006  # of the axis, between the intervals of neighbours


@styled
def draw_coefficients(
    *, task: str, per_weighting: LawFit, joint: LawFit, irreducible: float = math.nan
) -> Figure:
    """Draw α, L∞ and β of each weight's own law, ± one standard deviation, beside the joint law's."""
    figure = Figure(figsize=(5.4, 6.6))
    panels = figure.subplots(3, sharex=True)
    unit = per_weighting.observations.unit
    labels = {"alpha": "exponent α", "l_inf": f"limit L∞ ({unit})", "beta": "factor β"}
    for axes, (name, label) in zip(panels, labels.items(), strict=True):
        _draw_coefficient(axes, name, task, per_weighting, joint)
        axes.set_ylabel(label)
    if math.isfinite(irreducible):
        panels[1].axhline(irreducible, color=TASK_COLORS[1], ls=":", lw=1.6)
    log_value_axis(panels[2].yaxis)
    panels[0].set_title(task)
    panels[2].set_xlabel("weight p in the training mixture")
    panels[2].set_xlim(-0.03, 1.03)
    figure.align_ylabels(panels)
    _legend(figure, has_limit=math.isfinite(irreducible))
    return figure


def _draw_coefficient(axes: Axes, name: str, task: str, per_weighting: LawFit, joint: LawFit) -> None:
    estimates = per_weighting.parameters[name].sel(task=task).dropna("weight")
    std = per_weighting.std[name].sel(task=task, weight=estimates.weight).fillna(0)
    low, high = estimates.values - std.values, estimates.values + std.values
    if name == "beta":
        low = np.maximum(low, estimates.values / 10)  # a logarithmic axis has no 0
    low = np.maximum(low, 0.0)
    axes.fill_between(estimates.weight, low, high, color=_COLOR, alpha=0.16, lw=0)
    axes.plot(estimates.weight, estimates.values, "o-", color=_COLOR)
    shared = joint.parameters[name].sel(task=task)
    if name == "beta":
        shared = shared.dropna("weight")
        axes.plot(shared.weight, shared.values, "--", color="#1d2433", lw=1.3)
    else:
        axes.axhline(float(shared), color="#1d2433", ls="--", lw=1.3)


def _legend(figure: Figure, *, has_limit: bool) -> None:
    keys = [
        handle("each weight alone, ± 1 std", _COLOR, line="-", marker="o"),
        handle("joint law", "#1d2433", line="--"),
    ]
    if has_limit:
        keys.append(handle("true limit", TASK_COLORS[1], line=":"))
    legend_below(figure, keys, columns=3)


@styled
def draw_fractions(*, task: str, effective: EffectiveFractions, capacity: LawFit) -> Figure:
    """Draw f(p) of eq. 10 with 95% intervals, f̂(p) of eq. 12, and the diagonal f = p."""
    figure = Figure(figsize=(5.4, 4.5))
    axes = figure.subplots()
    weights = np.linspace(0, 1, 200)[1:]
    axes.plot([0, 1], [0, 1], "--", color=MUTED, lw=1.2)
    axes.plot(weights, fitted_fraction(capacity, task=task, weight=weights), color=TASK_COLORS[1])
    fractions = effective.fractions.sel(task=task).dropna("weight", subset=["value"])
    lower, upper = (fractions.interval.sel(bound=bound).values for bound in ("lower", "upper"))
    value = fractions.value.values
    spread = np.nan_to_num([np.maximum(value - lower, 0), np.maximum(upper - value, 0)])
    axes.errorbar(
        fractions.weight, value, yerr=spread, fmt="o", color=TASK_COLORS[0], capsize=3, lw=1.3, zorder=3
    )
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


@styled
def draw_relative_gain(sets: Mapping[str, EffectiveFractions], *, task: str | None = None) -> Figure:
    """Draw f(p) / p over p with 95% intervals, for several sets side by side (Fernandes et al. 2023, fig. 6).

    Args:
        sets: Effective fractions by what tells them apart: test set, direction, language pair.
        task: The task drawn; by default every task of every set.

    Raises:
        ValueError: If no set knows the fractions of a task.
    """
    lines = _known_gains(sets, task)
    if not lines:
        raise ValueError("`sets` must hold known effective fractions; they need runs at weight 1.")
    figure = Figure(figsize=(5.4, 4.5))
    axes = figure.subplots()
    axes.axhline(1.0, color=MUTED, ls="--", lw=1.2)
    keys = []
    for number, (label, gain) in enumerate(lines.items()):
        color, marker = TASK_COLORS[number % len(TASK_COLORS)], _MARKERS[number % len(_MARKERS)]
        _draw_gain(axes, gain, color, marker, shift=(number - (len(lines) - 1) / 2) * _DODGE)
        keys.append(handle(label, color, line="-", marker=marker))
    axes.set_xlim(-0.03, 1.03)
    spread_axis(axes.yaxis)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}×")
    axes.set(xlabel="weight p in the training mixture", ylabel="relative gain f(p) / p", title=task or "")
    legend_below(figure, [*keys, handle("f = p", line="--")], columns=3)
    return figure


def _known_gains(sets: Mapping[str, EffectiveFractions], task: str | None) -> dict[str, xr.Dataset]:
    """Return f(p) / p where it is known, by label."""
    gains_by_label = {}
    for label, effective in sets.items():
        gains = effective.relative_gain
        for name in gains.task.values if task is None else [task]:
            names = [part for part in (label, str(name) if task is None else "") if part]
            gain = gains.sel(task=name).dropna("weight", subset=["value"])
            if gain.weight.size:
                gains_by_label[", ".join(names)] = gain
    return gains_by_label


def _draw_gain(axes: Axes, gain: xr.Dataset, color: str, marker: str, *, shift: float) -> None:
    value = gain["value"].to_numpy()
    lower, upper = (gain["interval"].sel(bound=bound).to_numpy() for bound in ("lower", "upper"))
    spread = np.nan_to_num([np.maximum(value - lower, 0), np.maximum(upper - value, 0)])
    spread[0] = np.minimum(spread[0], 0.9 * value)  # a logarithmic axis has no 0
    axes.errorbar(
        gain.weight + shift, value, yerr=spread, fmt=f"{marker}-", color=color, capsize=2.5, lw=1.2, zorder=3
    )
