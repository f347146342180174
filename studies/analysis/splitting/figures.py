"""The figures of docs/studies/splitting.md."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from mnmt_laws.figures import marks
from mnmt_laws.figures.losses import SIZE_TITLE
from mnmt_laws.figures.style import (
    MUTED,
    TASK_COLORS,
    Chart,
    color,
    count_axis,
    format_size,
    ramp,
    styled,
    value_axis,
)

EQUAL = "f = p"
MEASURED, FAILED = "measured", "training failed"
KINDS = {MEASURED: "circle", FAILED: "cross"}
WEIGHT = alt.X("weight:Q", title="weight p", scale=alt.Scale(domain=[0, 1], nice=False, padding=8))
SIDE = 300
"""Width and height of a panel, in pixels."""


def draw_sizes(rows: pd.DataFrame, plateau: float) -> Chart:
    """Draw a task's reducible losses over size at each length, a line for each weight."""
    x = count_axis("size", rows["size"], SIZE_TITLE)
    panels = [
        loss_panel(some, x, plateau, f"{some['task'].iloc[0]}, {step:,} steps")
        for step, some in rows.groupby("step")
    ]
    return styled(*panels, columns=2)


def draw_fractions(table: pd.DataFrame, law: pd.DataFrame) -> Chart:
    """Draw f(p) by length with 95% intervals, f̂ of a law that knows the length, and f = p.

    Args:
        table: `task`, `line`, `weight`, `value`, `lower`, `upper`.
        law: The same, for the law.
    """
    names = [*table["line"].unique()]
    label = str(law["line"].iloc[0])
    colors = dict(zip(names, ramp(len(names)), strict=True)) | {label: TASK_COLORS[1], EQUAL: MUTED}
    panels = [
        fraction_panel(some, law[law["task"] == task], colors, str(task))
        for task, some in table.groupby("task")
    ]
    return styled(*panels, columns=2)


def draw_sharing(table: pd.DataFrame) -> Chart:
    """Draw f(p) of the first task by the share of features in common; a panel for each length."""
    names = sorted(table["line"].unique(), key=lambda line: float(line.split("%")[0]))
    colors = dict(zip(names, ramp(len(names)), strict=True)) | {EQUAL: MUTED}
    nothing = table.iloc[:0]
    panels = [
        fraction_panel(some, nothing, colors, f"{step:,} steps") for step, some in table.groupby("step")
    ]
    return styled(*panels, columns=2)


def fraction_panel(
    points: pd.DataFrame, law: pd.DataFrame, colors: dict[str, str], title: str
) -> alt.LayerChart:
    """Return f over p: points with bars, a law with its band, and the diagonal."""
    line = ["weight", "value", "line"]
    y = value_axis("value", [0, 1, *points["upper"].clip(upper=1.2)], "effective share f(p)", log=False)
    layers = [
        *(marks.bands(law) if len(law) else []), marks.reference(EQUAL, weight=[0, 1], value=[0, 1]),
        marks.lines(points[line], interpolate="linear", strokeWidth=1), marks.lines(law[line]),
        *marks.bars(points.assign(upper=points["upper"].clip(upper=1.2))),
        marks.points(points.assign(kind=MEASURED), kinds=KINDS),
    ]  # fmt: skip
    key = color("line", [*colors], [*colors.values()])
    return marks.panel(*layers, x=WEIGHT, y=y, color=key, title=title, width=SIDE, height=SIDE)


def draw_exposure(rows: pd.DataFrame, longest: pd.DataFrame, plateau: float) -> Chart:
    """Draw one size's reducible loss over steps by weight, with each run of the longest training.

    Args:
        rows: Losses of one task of one size.
        longest: Its runs of the longest training, with `broken`.
        plateau: The reducible loss of the best model without context.
    """
    rows = pd.concat([rows, longest.rename(columns={"steps": "step"})])
    x = count_axis("step", rows["step"], "training steps")
    title = f"{rows['task'].iloc[0]}, N = {format_size(rows['size'].iloc[0])}"
    return styled(loss_panel(rows, x, plateau, title))


def loss_panel(rows: pd.DataFrame, x: alt.X, plateau: float, title: str) -> alt.LayerChart:
    """Return every run, geometric means over seeds as lines, and the plateau as a dashed one."""
    field = str(x["shorthand"]).partition(":")[0]
    failed = rows["broken"].eq(True) if "broken" in rows else pd.Series(False, index=rows.index)
    weights = sorted(rows["weight"].unique())
    rows = rows.assign(
        line=[f"p = {weight:g}" for weight in rows["weight"]],
        kind=failed.map({True: FAILED, False: MEASURED}), value=rows["reducible"],
    )  # fmt: skip
    logs = np.log(rows.loc[~failed, "value"]).groupby([rows["line"], rows[field]])
    means = np.exp(logs.mean()).reset_index()
    ends = pd.DataFrame({field: [rows[field].min(), rows[field].max()], "value": plateau, "line": ""})
    key = color("line", names := [f"p = {weight:g}" for weight in weights], ramp(len(names)))
    layers = [
        marks.lines(ends, strokeDash=[5, 4], strokeWidth=1.2).encode(color=alt.value(MUTED)),
        marks.lines(means, interpolate="linear"),
        marks.points(rows[["line", field, "value", "kind", "seed"]], kinds=KINDS),
    ]
    y = value_axis("value", [*rows["value"], plateau], "reducible loss (nats per token)", log=True)
    return marks.panel(*layers, x=x, y=y, color=key, title=title, width=SIDE, height=SIDE)


def draw_three(rows: pd.DataFrame) -> Chart:
    """Draw reducible losses of models of three tasks over size with the lines that a law of two predicts."""
    label, sizes = "reducible loss (nats per token)", sorted(rows["size"].unique())
    rows = rows.assign(kind="measured", line=rows["mixture"].str.replace(",", "  "))
    names = sorted(rows["line"].unique())
    x, key = count_axis("size", sizes, SIZE_TITLE), color("line", names, ramp(len(names)))
    panels = []
    for task, part in marks.describe(rows, measured=rows["observed"]).groupby("task"):
        values = part[["observed", "predicted", *marks.LAW, *marks.PREDICTED]]
        line = part.drop_duplicates(["size", "line"]).sort_values("size")
        points = marks.points(
            part.assign(predicted_value=part["predicted"]), kinds={"measured": "circle"}
        ).encode(y="measured:Q")
        layers = [*marks.bands(line), marks.lines(line[["size", "line", "predicted"]]), points]
        y = value_axis("predicted", values, label, log=False)
        panels.append(marks.panel(*layers, x=x, y=y, color=key, title=str(task), width=300, height=260))
    return styled(*panels, columns=min(3, len(panels)))
