"""The figure of the coefficients of curves over size: over the weight, and over the exposure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd

from mnmt_laws.answers.exposure import Exponents
from mnmt_laws.figures import marks
from mnmt_laws.figures.style import (
    INK,
    TASK_COLORS,
    Chart,
    classes,
    color,
    count_axis,
    format_size,
    ramp,
    styled,
    value_axis,
)
from mnmt_laws.figures.weights import WEIGHT_AXIS
from mnmt_laws.fitting.law_fit import LawFit

_ALONE, _JOINT, _LIMIT = "each weight alone, ± 1 std", "joint law", "true limit"
_LINES = {_JOINT: INK, _LIMIT: TASK_COLORS[1]}


def draw_coefficients(
    exponents: Exponents,
    *,
    task: str,
    names: Sequence[str] = ("alpha", "beta", "l_inf"),
    limits: Exponents | None = None,
    joint: LawFit | None = None,
    irreducible: float = math.nan,
) -> Chart:
    """Draw α, β and L∞ of curves over size, ± one standard deviation (Fernandes et al. 2023, figs. 4, 10).

    They stand over the weight and, where training lengths vary, over the exposure p D in a colour for each
    length.

    Args:
        exponents: The curves.
        task: A task of theirs.
        names: The coefficients to draw.
        limits: Curves whose L∞ is drawn in place of theirs.
        joint: A fit of the joint law, drawn beside one length.
        irreducible: The known irreducible loss, if any.
    """
    axes = ["weight", "exposure"] if exponents.lengths_vary else ["weight"]
    titles = {"alpha": "exponent α", "beta": "factor β", "l_inf": f"limit L∞ ({exponents.value_unit})"}
    known = [_LIMIT] if math.isfinite(irreducible) else []
    references = [*([] if joint is None else [_JOINT]), *known]
    panels = []
    for name in names:
        origin = limits if name == "l_inf" and limits is not None else exponents
        points, labels = _coefficients(origin, task, name)
        lines = [] if joint is None else [_shared(joint, task, name)]
        lines += [_level(points, irreducible)] if name == "l_inf" and known else []
        shades = ramp(len(labels)) if len(labels) > 1 else TASK_COLORS[:1]
        key = color("line", [*labels, *references], [*shades, *(_LINES[line] for line in references)])
        panels += [
            _coefficient_panel(points, lines, x=x, title=titles[name], unit=exponents.unit).encode(color=key)
            for x in axes
        ]
    return styled(*(panel.properties(title=task) for panel in panels), columns=len(axes))


def _coefficients(exponents: Exponents, task: str, name: str) -> tuple[pd.DataFrame, list[str]]:
    """Return a coefficient of each curve with the ends of its bar and its length, and all lengths."""
    curves = exponents.curves[exponents.curves["task"] == task]
    value, std = curves[name], curves[f"{name}_std"]
    low, high = (value - std).clip(lower=0), value + std
    if name == "beta":  # a logarithmic axis has no 0
        spread = (std / value).where(std < value)  # beyond, β is undetermined: its bar would hide all values
        low, high = value * np.exp(-spread), value * np.exp(spread)
    points = curves[["weight", "exposure", "length"]].assign(value=value, std=std, lower=low, upper=high)
    if not exponents.lengths_vary:
        return points.assign(line=_ALONE), [_ALONE]
    label, labels = classes(points["length"], lambda length: f"D = {format_size(length)} {exponents.unit}")
    return points.assign(line=label), labels


def _coefficient_panel(
    points: pd.DataFrame, lines: list[pd.DataFrame], *, x: str, title: str, unit: str
) -> alt.LayerChart:
    """Draw a coefficient over `weight` or `exposure`, beside lines of the joint law and the known limit."""
    axis = WEIGHT_AXIS if x == "weight" else count_axis(x, points[x], f"exposure p D ({unit})")
    lines = [line for line in lines if x in line]
    values = [points["value"], points["lower"], points["upper"], *(line["value"] for line in lines)]
    titles = {"line": "curves", "weight": "weight p", "exposure": "exposure p D", "value": title,
              "std": "standard deviation"}  # fmt: skip
    layers = [
        *(marks.reference(line["line"].iloc[0], **{x: line[x], "value": line["value"]}) for line in lines),
        marks.lines(points, interpolate="linear", strokeWidth=1.2),
        *marks.bars(points),
        marks.with_tooltips(alt.Chart(marks.data(points)).mark_point(), points, titles),
    ]
    y = value_axis("value", pd.concat(values), title, log=title == "factor β")
    return marks.panel(*layers, x=axis, y=y, color=alt.Undefined, height=200)


def _level(points: pd.DataFrame, value: float) -> pd.DataFrame:
    """Return a level line over the whole axis of weights and of exposures."""
    ends = [points["exposure"].min(), points["exposure"].max()]
    return pd.DataFrame({"weight": [0.0, 1.0], "exposure": ends, "value": value, "line": _LIMIT})


def _shared(fit: LawFit, task: str, name: str) -> pd.DataFrame:
    """Return a coefficient of the joint law, which β has for each weight."""
    shared = fit.parameters[name].sel(task=task)
    if "weight" not in shared.dims:
        return pd.DataFrame({"weight": [0.0, 1.0], "value": float(shared), "line": _JOINT})
    shared = shared.dropna("weight")
    return pd.DataFrame({"weight": shared.weight, "value": shared.to_numpy(), "line": _JOINT})
