"""The figure: what every method gains on the free rule, over what its models cost."""

from __future__ import annotations

import altair as alt
import pandas as pd

from mnmt_laws.figures import marks
from mnmt_laws.figures.style import INK, Chart, color, dashes, styled, value_axis
from studies.analysis.decisions.advice import GRID, LINES, TOOL
from studies.analysis.decisions.trials import OWN

SCALE = 1000.0
SIDE = 240
"""Height of a panel, pixels."""
TOGETHER = "together"
KINDS = {"measured": "circle"}
SHIFTS = {TOOL: -0.12, LINES: 0.12}
"""Along the axis, since both see the same models."""
RULES = {"the best weights": marks.SOLID, "the free rule": marks.DASHED}


def draw_gains(by_table: pd.DataFrame, together: pd.DataFrame, costs: pd.DataFrame) -> Chart:
    """Draw the mean gain of each method with its interval, a panel for each table and one for all.

    Args:
        by_table: As `summarise` returns it, by table and small models, of decisions that can be won.
        together: The same, by small models.
        costs: As `costs_of` returns it, of all tables.
    """
    costs = costs[costs["table"].isin(by_table["table"])]
    mean = costs.groupby("small", as_index=False)[["cost", "smallest"]].mean()
    summary = pd.concat([by_table, together.assign(table=TOGETHER)])
    rows = summary[summary["small"].ne("none")].merge(
        pd.concat([costs, mean.assign(table=TOGETHER)]), on=["table", "small"], how="left"
    )
    names = ["gain", "lower", "upper", "stake"]
    rows[names] *= SCALE
    is_target = rows["small"].eq(OWN)
    runs = rows["method"].str.partition(" ")[0].where(is_target).astype(float)
    cost = rows["smallest"].where(rows["method"].eq(GRID), rows["cost"]).fillna(runs)
    rows = rows.assign(
        line=rows["method"].where(~is_target, OWN), flops=cost + rows["method"].map(SHIFTS).fillna(0.0),
        value=rows["gain"], kind="measured",
    )  # fmt: skip
    y = value_axis("value", rows[names], "gain on the free rule, thousandths of a nat", log=False)
    x = alt.Scale(domain=[0, float(rows["flops"].max()) + 0.5], nice=False)
    panels = [_panel(part, str(name), x, y) for name, part in rows.groupby("table", sort=False)]
    return styled(*panels, columns=2)


def _panel(rows: pd.DataFrame, table: str, x: alt.Scale, y: alt.Y) -> alt.LayerChart:
    best = pd.DataFrame({"value": [rows["stake"].iloc[0], 0.0], "rule": [*RULES]})
    rules = (
        alt.Chart(marks.data(best))
        .mark_rule()
        .encode(strokeDash=dashes("rule", RULES), color=alt.value(INK), x=alt.value(0), x2=alt.value("width"))
    )
    joined = marks.lines(rows[["flops", "value", "line"]], interpolate="linear", opacity=0.4)
    methods = [OWN, TOOL, LINES, GRID]
    return marks.panel(
        rules, joined, *marks.bars(rows), marks.points(rows, kinds=KINDS),
        x=alt.X("flops:Q", title="cost, trainings of the target", axis=alt.Axis(tickCount=7), scale=x),
        y=y, color=color("line", methods),
        title=f"{table} ({rows['decisions'].iloc[0]})", height=SIDE,
    )  # fmt: skip
