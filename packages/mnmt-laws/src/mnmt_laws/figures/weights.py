"""What changes with the weight: the coefficients of the laws, effective fractions and the relative gain."""

from __future__ import annotations

import math
from collections.abc import Mapping

import altair as alt
import numpy as np
import pandas as pd
import xarray as xr

from mnmt_laws.answers.fractions import EffectiveFractions, fitted_fraction
from mnmt_laws.figures.points import data, mark_band, number_tip, text_tip, with_field
from mnmt_laws.figures.style import (
    HEIGHT,
    INK,
    MUTED,
    TASK_COLORS,
    WIDTH,
    Chart,
    color,
    dashes,
    styled,
    value_scale,
)
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.uncertainty import bounds_of

_ALONE, _JOINT, _LIMIT, _EQUAL = "each weight alone, ± 1 std", "joint law", "true limit", "f = p"
_MEASURED = "f(p), 95% interval"
_DODGE = 0.006  # of the axis, between the intervals of neighbours
_WEIGHT = alt.X(
    "weight:Q",
    title="weight p in the training mixture",
    scale=alt.Scale(domain=[0, 1], nice=False, padding=8),
)
_ENDS = ("lower", "upper")


def draw_coefficients(
    *, task: str, per_weighting: LawFit, joint: LawFit, irreducible: float = math.nan
) -> Chart:
    """Draw α, L∞ and β of each weight's own law, ± one standard deviation, beside the joint law's."""
    unit = per_weighting.observations.unit
    titles = {"alpha": "exponent α", "l_inf": f"limit L∞ ({unit})", "beta": "factor β"}
    limits = {"l_inf": irreducible} if math.isfinite(irreducible) else {}
    laws = [_ALONE, _JOINT, *([_LIMIT] if limits else [])]
    panels = [
        _coefficient_panel(name, title, task, per_weighting, joint, limits.get(name, math.nan), laws)
        for name, title in titles.items()
    ]
    return styled(panels[0].properties(title=task), *panels[1:])


def _coefficient_panel(
    name: str,
    title: str,
    task: str,
    per_weighting: LawFit,
    joint: LawFit,
    irreducible: float,
    laws: list[str],
) -> alt.LayerChart:
    estimates = per_weighting.parameters[name].sel(task=task).dropna("weight")
    value = estimates.to_numpy()
    std = per_weighting.std[name].sel(task=task, weight=estimates.weight).fillna(0).to_numpy()
    least = value / 10 if name == "beta" else 0.0  # a logarithmic axis has no 0
    columns = {"weight": estimates.weight, "value": value, "std": std, "law": _ALONE}
    alone = pd.DataFrame({**columns, "lower": np.maximum(value - std, least), "upper": value + std})
    shared = joint.parameters[name].sel(task=task)
    lines = [pd.DataFrame({"weight": [0.0, 1.0], "value": float(shared), "law": _JOINT})
             if name != "beta" else _series(shared.dropna("weight"), _JOINT)]  # fmt: skip
    if math.isfinite(irreducible):
        lines.append(pd.DataFrame({"weight": [0.0, 1.0], "value": irreducible, "law": _LIMIT}))
    extent = np.concatenate([alone["lower"], alone["upper"], *(line["value"] for line in lines)])
    y = alt.Y("value:Q", title=title, **value_scale(extent, log=name == "beta"))
    key = color("law", laws, [TASK_COLORS[0], INK, TASK_COLORS[1]][: len(laws)])
    dash = dashes("law", {law: pattern for law, pattern in _DASHES.items() if law in laws})
    curves = alt.Chart(data(pd.concat([alone[["weight", "value", "law"]], *lines]))).mark_line()
    tips = [
        number_tip("weight", "weight p"),
        number_tip("value", title),
        number_tip("std", "standard deviation"),
    ]
    points = alt.Chart(data(alone)).mark_point().encode(x=_WEIGHT, y=y, color=key, tooltip=tips)
    layers = (
        mark_band(alone, _WEIGHT, y, key, ends=_ENDS),
        curves.encode(x=_WEIGHT, y=y, color=key, strokeDash=dash),
    )
    return alt.layer(*layers, points).properties(width=WIDTH, height=180)


_DASHES = {_ALONE: (1, 0), _JOINT: (6, 4), _LIMIT: (2, 3)}


def _series(values: xr.DataArray, law: str) -> pd.DataFrame:
    return pd.DataFrame({"weight": values.weight, "value": values.to_numpy(), "law": law})


def draw_fractions(
    *, task: str, effective: EffectiveFractions | None = None, laws: LawFit | Mapping[str, LawFit]
) -> Chart:
    """Draw f(p) of eq. 10 with 95% intervals, f̂(p) of laws that have one, and the diagonal f = p.

    Args:
        task: A fitted task.
        effective: f(p) of each fitted weight, where runs at weight 1 give it.
        laws: A fit of a law with a fraction, or fits by what the legend calls them. The other tasks share
            1 − p equally where a law asks for the whole mixture.
    """
    named = {"f̂(p), capacity law": laws} if isinstance(laws, LawFit) else dict(laws)
    curves = pd.concat([_fraction_curve(fit, task).assign(law=name) for name, fit in named.items()])
    diagonal = pd.DataFrame({"weight": [0.0, 1.0], "value": [0.0, 1.0], "law": _EQUAL})
    points = _fraction_points(effective, task)
    laws_shown = ([] if points.empty else [_MEASURED]) + [*named, _EQUAL]
    colors = [TASK_COLORS[0], *TASK_COLORS[1 : 1 + len(named)], MUTED][-len(laws_shown) :]
    extent = pd.concat(
        [curves[["value", "lower", "upper"]].stack(), points.get("upper", pd.Series()), diagonal["value"]]
    )
    y = alt.Y("value:Q", title="effective share f(p) = N_eff / N", **value_scale([0, *extent], log=False))
    key = color("law", laws_shown, colors)
    layers = (
        [mark_band(curves.dropna(), _WEIGHT, y, key, ends=_ENDS)] if curves["lower"].notna().any() else []
    )
    patterns = alt.condition("datum.law == '" + _EQUAL + "'", alt.value([5, 4]), alt.value([1, 0]))
    lines = alt.Chart(data(pd.concat([curves, diagonal])[["weight", "value", "law"]])).mark_line()
    layers.append(lines.encode(x=_WEIGHT, y=y, color=key, strokeDash=patterns))
    if not points.empty:
        layers += _with_intervals(points, y, key)
    return styled(alt.layer(*layers).properties(width=WIDTH, height=HEIGHT, title=task))


def _fraction_curve(fit: LawFit, task: str) -> pd.DataFrame:
    weights = np.linspace(0, 1, 51)[1:]
    others = [name for name in fit.tasks if name != task]
    mixture = {task: weights, **{name: (1 - weights) / len(others) for name in others}} if others else None
    asks = {"weight": weights, "mixture": mixture if "partners" in fit.law.predictors else None}
    value = fitted_fraction(fit, task=task, **asks)
    low, high = bounds_of(fitted_fraction(fit, task=task, **asks, draws=True), 0.95)
    return pd.DataFrame({"weight": weights, "value": value, "lower": low, "upper": high})


def _fraction_points(effective: EffectiveFractions | None, task: str) -> pd.DataFrame:
    if effective is None:
        return pd.DataFrame()
    return _interval_frame(effective.fractions.sel(task=task).dropna("weight", subset=["value"]), _MEASURED)


def _interval_frame(values: xr.Dataset, law: str, shift: float = 0.0) -> pd.DataFrame:
    """Return `weight`, `value` and the ends of its interval, which are the value itself where unknown."""
    value, weight = values["value"].to_numpy(), values.weight.to_numpy()
    low, high = (np.nan_to_num(values["interval"].sel(bound=end).to_numpy(), nan=np.nan) for end in _ENDS)
    ends = {"lower": np.fmin(low, value), "upper": np.fmax(high, value)}
    return pd.DataFrame({"weight": weight + shift, "p": weight, "value": value, **ends, "law": law})


def _with_intervals(points: pd.DataFrame, y: alt.Y, key: alt.Color) -> list[alt.Chart]:
    """Return points with their intervals as bars."""
    tips = [text_tip("law", "measure"), number_tip("p", "weight p"), number_tip("value", "value"),
            number_tip("lower", "95% from"), number_tip("upper", "to")]  # fmt: skip
    base = alt.Chart(data(points)).encode(x=_WEIGHT, color=key, tooltip=tips)
    return [base.mark_rule().encode(y=with_field(y, "lower"), y2="upper:Q"), base.mark_point().encode(y=y)]


def draw_relative_gain(sets: Mapping[str, EffectiveFractions], *, task: str | None = None) -> Chart:
    """Draw f(p) / p over p with 95% intervals, for several sets side by side (Fernandes et al. 2023, fig. 6).

    Args:
        sets: Effective fractions by what tells them apart: test set, direction, language pair.
        task: The task drawn; by default every task of every set.

    Raises:
        ValueError: If no set knows the fractions of a task.
    """
    gains = _known_gains(sets, task)
    if not gains:
        raise ValueError("`sets` must hold known effective fractions; they need runs at weight 1.")
    shifts = (np.arange(len(gains)) - (len(gains) - 1) / 2) * _DODGE
    points = pd.concat(
        _interval_frame(gain, label, shift)
        for (label, gain), shift in zip(gains.items(), shifts, strict=True)
    )
    points["lower"] = np.maximum(points["lower"], 0.1 * points["value"])  # a logarithmic axis has no 0
    axis = value_scale([1.0, *points["lower"], *points["upper"]])
    axis["axis"].labelExpr = "format(datum.value, '~g') + '×'"
    y, key = alt.Y("value:Q", title="relative gain f(p) / p", **axis), color("law", list(gains))
    equal = (
        alt.Chart(data(pd.DataFrame({"value": [1.0]}))).mark_rule(color=MUTED, strokeDash=[5, 4]).encode(y=y)
    )
    lines = alt.Chart(data(points[["weight", "value", "law"]])).mark_line(strokeWidth=1.2)
    layers = [equal, lines.encode(x=_WEIGHT, y=y, color=key), *_with_intervals(points, y, key)]
    return styled(alt.layer(*layers).properties(width=WIDTH, height=HEIGHT, title=task or ""))


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
