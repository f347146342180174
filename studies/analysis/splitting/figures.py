"""The figures of docs/studies/splitting.md."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from mnmt_laws.figures import marks
from mnmt_laws.figures.losses import SIZE_TITLE
from mnmt_laws.figures.style import INK, MUTED, Chart, color, count_axis, ramp, styled, value_axis
from mnmt_laws.figures.weights import WEIGHT_AXIS

EQUAL = "f = p"
KINDS = {"measured": "circle"}
MOST_LABELS = 3
SIDE = 300
"""Width and height of a panel, in pixels."""


def draw_exponents(curves: pd.DataFrame) -> Chart:
    """Draw α of each curve with its 95% interval over the exposure, by length.

    A panel is of a table and a task that was trained alone, too. Few weights stand beside their points.
    """
    curves = curves.groupby(["table", "task"]).filter(lambda part: bool(part["weight"].max() == 1))
    points = curves.rename(columns={"alpha": "value"}).sort_values("step", kind="stable")
    points = points.assign(kind="measured", label=points["weight"].map("{:g}".format))
    points["line"] = points["step"].map("T = {:,} steps".format)
    x = count_axis("exposure", points["exposure"], "exposure p T (steps)")
    y = value_axis("value", [*points["lower"], *points["upper"]], "exponent α", log=False)
    key = color("line", [*points["line"].unique()], ramp(points["line"].nunique()))
    panels = [
        marks.panel(
            *marks.bars(part), marks.points(part, kinds=KINDS), *_labels(part),
            x=x, y=y, color=key, title=f"{task}, {table}", width=SIDE, height=SIDE,
        )
        for (table, task), part in points.groupby(["table", "task"], sort=False)
    ]  # fmt: skip
    return styled(*panels, columns=3)


def draw_curves(rows: pd.DataFrame) -> Chart:
    """Draw reducible losses over size on log axes, a power law for each weight, a panel for each length.

    Points are geometric means over seeds, bars the seeds. Fig. 3 of the paper.
    """
    keys = ["weight", "step", "task", "size"]
    points = (
        np.exp(rows.groupby(keys)["log"].agg(["mean", "min", "max"]))
        .reset_index()
        .set_axis([*keys, "value", "lower", "upper"], axis=1)
    )
    points = points.assign(kind="measured", line=points["weight"].map("p = {:g}".format))
    x = count_axis("size", points["size"], SIZE_TITLE)
    y = value_axis("value", [*points["lower"], *points["upper"]], "reducible loss (nats per token)", log=True)
    key = color("line", [*points["line"].unique()], ramp(points["line"].nunique()))
    panels = [
        marks.panel(
            marks.lines(part[["line", "size", "value"]], strokeWidth=1)
            .transform_regression("size", "value", method="pow", groupby=["line"]),
            *marks.bars(part), marks.points(part, kinds=KINDS),
            x=x, y=y, color=key, title=f"{step:,} steps", width=SIDE, height=SIDE,
        )
        for step, part in points.groupby("step")
    ]  # fmt: skip
    return styled(*panels, columns=3)


def _labels(points: pd.DataFrame) -> list[alt.Chart]:
    """Return the column `label` as text beside points, right of tasks alone, none if weights are many."""
    if points["weight"].nunique() > MOST_LABELS:
        return []
    is_alone = points["weight"].eq(1)
    sides = {"left": (6, points[is_alone]), "right": (-6, points[~is_alone])}
    return [
        alt.Chart(marks.data(part)).mark_text(dx=dx, dy=-6, align=align, fontSize=11)
        .encode(text="label:N", color=alt.value(INK))
        for align, (dx, part) in sides.items()
    ]  # fmt: skip


def draw_fractions(f: pd.DataFrame) -> Chart:
    """Draw f(p) of the joint law with 95% intervals, and f̂(p) of eq. 12 as lines, at each length."""
    points = f.assign(upper=f["upper"].clip(upper=1.2), kind="measured")
    points["line"] = points["step"].map("{:,} steps".format)
    names = [*points["line"].unique()]
    y = value_axis("value", [0, 1, *points["upper"]], "effective share f(p)", log=False)
    key = color("line", [*names, EQUAL], [*ramp(len(names)), MUTED])
    panels = [
        marks.panel(
            marks.reference(EQUAL, weight=[0, 1], value=[0, 1]),
            marks.lines(part.assign(value=part["eq. 12"])[["line", "weight", "value"]], strokeWidth=1),
            *marks.bars(part), marks.points(part, kinds=KINDS),
            x=WEIGHT_AXIS, y=y, color=key, title=str(task), width=SIDE, height=SIDE,
        )
        for task, part in points.groupby("task")
    ]  # fmt: skip
    return styled(*panels, columns=2)
