"""Figures of effective fractions: over the weight, over the size, and of several sets."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import numpy as np
import pandas as pd
import xarray as xr

from mnmt_laws.answers.fractions import EffectiveFractions, fitted_fraction
from mnmt_laws.errors import ArgumentError
from mnmt_laws.figures import marks
from mnmt_laws.figures.losses import SIZE_TITLE
from mnmt_laws.figures.marks import LAW
from mnmt_laws.figures.style import (
    MUTED,
    TASK_COLORS,
    Chart,
    classes,
    color,
    count_axis,
    ramp,
    styled,
    value_axis,
)
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.uncertainty import bounds_of

_EQUAL = "f = p"
_MEASURED = "f(p), 95% interval"
_DODGE = 0.006  # of the axis, between the intervals of neighbours
_WHOLE = alt.Scale(domain=[0, 1], nice=False, padding=8)
WEIGHT_AXIS = alt.X("weight:Q", title="weight p in the training mixture", scale=_WHOLE)


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
        marks.panel(
            *layers, x=WEIGHT_AXIS, y=y, color=color("line", [*colors], [*colors.values()]), title=task
        )
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


def draw_fractions_by_size(fractions: pd.DataFrame, *, task: str) -> Chart:
    """Draw f over size, read without a law, a line for each weight; arrows where only a bound is known.

    Args:
        fractions: From `fractions_by_size`; where lengths vary, the longest is drawn.
        task: A task of theirs.
    """
    rows = fractions[fractions["task"] == task]
    rows = rows[rows["length"].isna() | rows["length"].eq(rows["length"].max())]
    label, labels = classes(rows["weight"], lambda weight: f"p = {weight:.3g}")
    bound = rows["upper"].where(np.isfinite(rows["upper"]), rows["lower"])
    kind = np.where(rows["value"].notna(), "read", np.where(rows["lower"] > 0, "at least", "at most"))
    points = marks.describe(rows.drop(columns="length"), line=label, kind=kind, value=bound)
    known = points[points["kind"] == "read"]
    kinds = {"read": "circle", "at most": "triangle-down", "at least": "triangle-up"}
    y = value_axis("value", points["value"], "effective share f = N_eff / N", log=True)
    layers = [marks.lines(known, interpolate="linear"), marks.points(points, kinds=kinds, value="f")]
    x = count_axis("size", points["size"], SIZE_TITLE)
    return styled(marks.panel(*layers, x=x, y=y, color=color("line", labels, ramp(len(labels))), title=task))


def draw_fractions_of_sets(sets: Mapping[str, EffectiveFractions], *, task: str | None = None) -> Chart:
    """Draw f(p) with 95% intervals for several sets side by side (Fernandes et al. 2023, fig. 6).

    Args:
        sets: Effective fractions by name: of a test set, direction or language pair.
        task: The task drawn; by default every task of every set.

    Raises:
        ValueError: If no set knows the fractions of a task.
    """
    known = _known_fractions(sets, task)
    if not known:
        raise ArgumentError("`sets` must hold known effective fractions; they need runs at weight 1.")
    shifts = (np.arange(len(known)) - (len(known) - 1) / 2) * _DODGE
    parts = zip(known.items(), shifts, strict=True)
    points = pd.concat([_with_ends(fractions, label, shift) for (label, fractions), shift in parts])
    y = value_axis("value", [0, 1, *points["upper"]], "effective share f(p) = N_eff / N", log=False)
    thin = marks.lines(points[["weight", "value", "line"]], interpolate="linear", strokeWidth=1.2)
    layers = [marks.reference(weight=[0, 1], value=[0, 1]), thin, *_dots(points)]
    return styled(marks.panel(*layers, x=WEIGHT_AXIS, y=y, color=color("line", [*known]), title=task or ""))


def _known_fractions(sets: Mapping[str, EffectiveFractions], task: str | None) -> dict[str, xr.Dataset]:
    """Return f(p) where it is known, by label."""
    by_label = {}
    for label, effective in sets.items():
        for name in effective.fractions.task.values if task is None else [task]:
            names = [part for part in (label, str(name) if task is None else "") if part]
            fractions = effective.fractions.sel(task=name).dropna("weight", subset=["value"])
            if fractions.weight.size:
                by_label[", ".join(names)] = fractions
    return by_label
