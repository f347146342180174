"""The figures of docs/studies/splitting.md."""

from __future__ import annotations

from collections.abc import Callable

import altair as alt
import pandas as pd

from mnmt_laws.figures import marks
from mnmt_laws.figures.losses import SIZE_TITLE
from mnmt_laws.figures.style import INK, MUTED, Chart, color, count_axis, ramp, styled, value_axis
from mnmt_laws.figures.weights import WEIGHT_AXIS

EQUAL = "f = p"
KINDS = {"measured": "circle"}
LABELS = (0.05, 0.3, 1.0)
SIDE = 300
"""Width and height of a panel, in pixels."""


def draw_exponents(curves: pd.DataFrame) -> Chart:
    """Draw α of each curve with its 95% interval over the exposure, by length.

    A panel is of a table and a task that was trained alone, too. Points of weights in `LABELS` carry them.
    """
    curves = curves.groupby(["table", "task"]).filter(lambda part: bool(part["weight"].max() == 1))
    points, names = _with_line(curves, "step", lambda step: f"T = {step:,} steps")
    points = points.assign(
        value=curves["alpha"], lower=curves["lower"].clip(lower=0), kind="measured",
        label=[f"{p:g}" if p in LABELS else "" for p in curves["weight"]],
    )  # fmt: skip
    x = count_axis("exposure", points["exposure"], "exposure p T (steps)")
    y = value_axis("value", [0, *points["upper"]], "exponent α", log=False)
    key = color("line", [*names.values()], ramp(len(names)))
    panels = [
        marks.panel(
            *marks.bars(part), marks.points(part, kinds=KINDS), _labels(part),
            x=x, y=y, color=key, title=f"{task}, {table}", width=SIDE, height=SIDE,
        )
        for (table, task), part in points.groupby(["table", "task"], sort=False)
    ]  # fmt: skip
    return styled(*panels, columns=2)


def _labels(points: pd.DataFrame) -> alt.Chart:
    """Return the column `label` as text at the left of points."""
    text = alt.Chart(marks.data(points)).mark_text(dx=-6, dy=-6, align="right", fontSize=11)
    labels: alt.Chart = text.encode(text="label:N", color=alt.value(INK))
    return labels


def draw_fractions(f: pd.DataFrame, curves: pd.DataFrame) -> Chart:
    """Draw f(p) of the joint law with 95% intervals, and f̂(p) of eq. 12, at each length."""
    points, names = _with_line(f, "step", lambda step: f"{step:,} steps")
    curves = curves.assign(line=curves["step"].map(names))
    colors = dict(zip(names.values(), ramp(len(names)), strict=True)) | {EQUAL: MUTED}
    points = points.assign(upper=points["upper"].clip(upper=1.2), kind="measured")
    y = value_axis("value", [0, 1, *points["upper"]], "effective share f(p)", log=False)
    key = color("line", [*colors], [*colors.values()])
    panels = [
        marks.panel(
            marks.reference(EQUAL, weight=[0, 1], value=[0, 1]),
            marks.lines(curves[curves["task"] == task], strokeWidth=1),
            *marks.bars(part), marks.points(part, kinds=KINDS),
            x=WEIGHT_AXIS, y=y, color=key, title=str(task), width=SIDE, height=SIDE,
        )
        for task, part in points.groupby("task")
    ]  # fmt: skip
    return styled(*panels, columns=2)


def draw_shares_by_size(shares: pd.DataFrame, f: pd.DataFrame) -> Chart:
    """Draw f read at each size with 95% intervals, a line for each weight, and f̂ of eq. 12 dashed."""
    points, names = _with_line(shares.dropna(), "weight", lambda weight: f"p = {weight:g}")
    points = points.assign(kind="measured")
    x = count_axis("size", points["size"], SIZE_TITLE)
    y = value_axis("value", [*points["lower"], *points["upper"]], "effective share f = N_eff / N", log=True)
    key = color("line", [*names.values()], ramp(len(names)))
    flat = points.merge(f[["task", "step", "weight", "eq. 12"]], on=["task", "step", "weight"])
    flat = flat.assign(value=flat["eq. 12"])[["task", "line", "size", "value"]]
    panels = [
        marks.panel(
            marks.lines(flat[flat["task"] == task], strokeDash=[5, 4], strokeWidth=1),
            marks.lines(part[["line", "size", "value"]], interpolate="linear", strokeWidth=1),
            *marks.bars(part), marks.points(part, kinds=KINDS),
            x=x, y=y, color=key, title=f"{task}, {part['step'].iloc[0]:,} steps", width=SIDE, height=SIDE,
        )
        for task, part in points.groupby("task")
    ]  # fmt: skip
    return styled(*panels, columns=2)


def _with_line(
    rows: pd.DataFrame, level: str, name: Callable[[float], str]
) -> tuple[pd.DataFrame, dict[float, str]]:
    """Return rows with the name of their level as `line`, and the names of all levels in order."""
    names = {value: name(value) for value in sorted(rows[level].unique())}
    return rows.assign(line=rows[level].map(names)), names
