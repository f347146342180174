"""Figures over the weight: the coefficients of the laws, effective fractions and the relative gain."""

from __future__ import annotations

import math
from collections.abc import Mapping

import altair as alt
import numpy as np
import pandas as pd
import xarray as xr

from mnmt_laws.answers.fractions import EffectiveFractions, fitted_fraction
from mnmt_laws.errors import ArgumentError
from mnmt_laws.figures import marks
from mnmt_laws.figures.marks import DASHED, DOTTED, LAW, SOLID
from mnmt_laws.figures.style import INK, MUTED, TASK_COLORS, Chart, color, dashes, styled, value_axis
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.uncertainty import bounds_of

_ALONE, _JOINT, _LIMIT, _EQUAL = "each weight alone, ± 1 std", "joint law", "true limit", "f = p"
_MEASURED = "f(p), 95% interval"
_DODGE = 0.006  # of the axis, between the intervals of neighbours
_WHOLE = alt.Scale(domain=[0, 1], nice=False, padding=8)
_WEIGHT = alt.X("weight:Q", title="weight p in the training mixture", scale=_WHOLE)


def draw_coefficients(
    *, task: str, per_weighting: LawFit, joint: LawFit, irreducible: float = math.nan
) -> Chart:
    """Draw α, L∞ and β of each weight's own law, ± one standard deviation, beside the joint law's."""
    unit = per_weighting.observations.unit
    titles = {"alpha": "exponent α", "l_inf": f"limit L∞ ({unit})", "beta": "factor β"}
    patterns = {_ALONE: SOLID, _JOINT: DASHED, **({_LIMIT: DOTTED} if math.isfinite(irreducible) else {})}
    dash = dashes("line", patterns)
    key = color("line", [*patterns], [TASK_COLORS[0], INK, TASK_COLORS[1]][: len(patterns)])
    panels: list[alt.LayerChart] = []
    for name, title in titles.items():
        alone, lines = _alone(per_weighting, task, name), [_shared(joint, task, name)]
        if name == "l_inf" and _LIMIT in patterns:
            lines.append(_flat(irreducible, _LIMIT))
        extent = pd.concat([alone["lower"], alone["upper"], *(line["value"] for line in lines)])
        curves = pd.concat([alone[["weight", "value", "line"]], *lines])
        titles = {"weight": "weight p", "value": title, "std": "standard deviation"}
        dots = marks.with_tooltips(alt.Chart(marks.data(alone)).mark_point(), alone, titles)
        layers = [*marks.bands(alone), marks.lines(curves, dash=dash, interpolate="linear"), dots]
        y = value_axis("value", extent, title, log=name == "beta")
        panels.append(marks.panel(*layers, x=_WEIGHT, y=y, color=key, title=task, height=180))
    return styled(*panels)


def _alone(fit: LawFit, task: str, name: str) -> pd.DataFrame:
    """Return a parameter at each weight, ± one standard deviation."""
    estimates = fit.parameters[name].sel(task=task).dropna("weight")
    value = estimates.to_numpy()
    std = fit.std[name].sel(task=task, weight=estimates.weight).fillna(0).to_numpy()
    low = np.maximum(value - std, value / 10 if name == "beta" else 0.0)  # a logarithmic axis has no 0
    columns = {"weight": estimates.weight, "value": value, "std": std, "lower": low, "upper": value + std}
    return pd.DataFrame(columns).assign(line=_ALONE)


def _shared(fit: LawFit, task: str, name: str) -> pd.DataFrame:
    """Return a parameter of the joint law, which β has for each weight."""
    shared = fit.parameters[name].sel(task=task)
    if "weight" not in shared.dims:
        return _flat(float(shared), _JOINT)
    shared = shared.dropna("weight")
    return pd.DataFrame({"weight": shared.weight, "value": shared.to_numpy(), "line": _JOINT})


def _flat(value: float, line: str) -> pd.DataFrame:
    return pd.DataFrame({"weight": [0.0, 1.0], "value": value, "line": line})


def draw_fractions(
    *, task: str, effective: EffectiveFractions | None = None, laws: LawFit | Mapping[str, LawFit]
) -> Chart:
    """Draw f(p) of eq. 10 with 95% intervals, f̂(p) of laws that have one, and the diagonal f = p.

    Args:
        task: A fitted task.
        effective: f(p) of each fitted weight, where runs at weight 1 give it.
        laws: A fit of a law with a fraction, or fits by their names in the legend. Where a law needs the
            whole mixture, the other tasks share 1 − p equally.
    """
    named = {"f̂(p), capacity law": laws} if isinstance(laws, LawFit) else dict(laws)
    curves = pd.concat([_fraction_curve(fit, task).assign(line=name) for name, fit in named.items()])
    points = pd.DataFrame(columns=["value", "upper"], dtype=float)
    if effective is not None:
        known = effective.fractions.sel(task=task).dropna("weight", subset=["value"])
        points = _with_ends(known, _MEASURED)
    colors = {_MEASURED: TASK_COLORS[0], **dict(zip(named, TASK_COLORS[1:], strict=False)), _EQUAL: MUTED}
    if points.empty:
        colors.pop(_MEASURED)
    extent = [0, 1, *curves["value"], *curves["upper"], *points["upper"]]
    y = value_axis("value", extent, "effective share f(p) = N_eff / N", log=False)
    lines = marks.lines(curves[["weight", "value", "line"]])
    equal = marks.reference(_EQUAL, weight=[0, 1], value=[0, 1])
    layers = [*marks.bands(curves), equal, lines, *_dots(points)]
    return styled(
        marks.panel(*layers, x=_WEIGHT, y=y, color=color("line", [*colors], [*colors.values()]), title=task)
    )


def _fraction_curve(fit: LawFit, task: str) -> pd.DataFrame:
    weights = np.linspace(0, 1, 51)[1:]
    others = [name for name in fit.tasks if name != task]
    mixture = {task: weights, **{name: (1 - weights) / len(others) for name in others}}
    asked = mixture if "partners" in fit.law.predictors else None
    value = fitted_fraction(fit, task=task, weight=weights, mixture=asked)
    draws = fitted_fraction(fit, task=task, weight=weights, mixture=asked, draws=True)
    low, high = bounds_of(draws, 0.95)
    return pd.DataFrame({"weight": weights, "value": value, "lower": low, "upper": high})


def _with_ends(values: xr.Dataset, line: str, shift: float = 0.0) -> pd.DataFrame:
    """Return `weight`, `value` and the ends of its interval, which are the value itself where unknown."""
    value, weight = values["value"].to_numpy(), values.weight.to_numpy()
    low, high = (values["interval"].sel(bound=end).to_numpy() for end in LAW)
    ends = {"lower": np.fmin(low, value), "upper": np.fmax(high, value)}
    return pd.DataFrame({"weight": weight + shift, "p": weight, "value": value, **ends, "line": line})


def _dots(points: pd.DataFrame) -> list[alt.Chart]:
    """Return points with their intervals as bars; empty without rows."""
    if points.empty:
        return []
    titles = {"line": "measure", "p": "weight p", "value": "value", "lower": "95% from", "upper": "to"}
    return [
        *marks.bars(points),
        marks.with_tooltips(alt.Chart(marks.data(points)).mark_point(), points, titles),
    ]


def draw_relative_gain(sets: Mapping[str, EffectiveFractions], *, task: str | None = None) -> Chart:
    """Draw f(p) / p over p with 95% intervals, for several sets side by side (Fernandes et al. 2023, fig. 6).

    Args:
        sets: Effective fractions by name: of a test set, direction or language pair.
        task: The task drawn; by default every task of every set.

    Raises:
        ValueError: If no set knows the fractions of a task.
    """
    gains = _known_gains(sets, task)
    if not gains:
        raise ArgumentError("`sets` must hold known effective fractions; they need runs at weight 1.")
    shifts = (np.arange(len(gains)) - (len(gains) - 1) / 2) * _DODGE
    parts = zip(gains.items(), shifts, strict=True)
    points = pd.concat([_with_ends(gain, label, shift) for (label, gain), shift in parts])
    points["lower"] = np.maximum(points["lower"], 0.1 * points["value"])  # a logarithmic axis has no 0
    y = value_axis("value", [1.0, *points["lower"], *points["upper"]], "relative gain f(p) / p")
    y["axis"]["labelExpr"] = "format(datum.value, '~g') + '×'"
    thin = marks.lines(points[["weight", "value", "line"]], interpolate="linear", strokeWidth=1.2)
    layers = [marks.reference(weight=[0, 1], value=[1, 1]), thin, *_dots(points)]
    return styled(marks.panel(*layers, x=_WEIGHT, y=y, color=color("line", [*gains]), title=task or ""))


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
