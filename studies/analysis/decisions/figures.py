"""Figures: the regret of every method, and the weights that it chooses."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import pandas as pd

from mnmt_laws.arrays import Array
from mnmt_laws.figures import marks
from mnmt_laws.figures.style import INK, MUTED, TASK_COLORS, Chart, color, legend, styled
from studies.analysis.decisions.advice import OURS
from studies.analysis.decisions.purchases import Market

FAMILIES = {
    OURS: TASK_COLORS[0], "lines": TASK_COLORS[4], "He": TASK_COLORS[1], "share-tied": TASK_COLORS[2],
    "grid": TASK_COLORS[5], "no runs": TASK_COLORS[7],
}  # fmt: skip
"""The colour of each family of methods."""

NO_PURCHASE = "grids and rules"

LINEAR = 0.002
"""Nats per token up to which the axis of regret is about linear; it is logarithmic beyond."""

TICKS = [0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1]

ROW = 22
"""Height of a method's row, pixels."""


def draw_regret(summary: pd.DataFrame) -> Chart:
    """Draw the mean regret of each method with its interval over draws, a panel for each objective.

    Args:
        summary: As `summarise` returns it; the compute stands in brackets behind the method.
    """
    return styled(*(_regret_panel(rows, name) for name, rows in _by_objective(_labelled(summary))))


def _regret_panel(rows: pd.DataFrame, title: str) -> alt.LayerChart:
    compute = rows.groupby("method")["compute"].agg(lambda values: ", ".join(f"{v:.1f}" for v in values))
    rows = rows.assign(label=rows["method"] + " (" + rows["method"].map(compute) + ")")
    kinds = list(dict.fromkeys(rows["runs"]))
    base = alt.Chart(marks.data(rows)).encode(yOffset=alt.YOffset("runs:N", sort=kinds))
    bars = base.mark_rule(opacity=0.5, strokeWidth=2).encode(x="lower:Q", x2="upper:Q")
    shape = alt.Shape("runs:N", scale=alt.Scale(domain=kinds), legend=legend(kinds, symbolFillColor=MUTED))
    tips = {"method": "method", "runs": "small runs", "regret": "regret", "compute": "compute"}
    points = marks.with_tooltips(base.mark_point(filled=True, size=55).encode(shape=shape), rows, tips)
    scale = alt.Scale(type="symlog", constant=LINEAR)
    axis = alt.Axis(values=TICKS, labelExpr="format(datum.value, '~g')")
    x = alt.X("regret:Q", title="regret, nats per token", scale=scale, axis=axis)
    return _panel(bars, points, x=x, field="label", rows=rows, title=title)


def draw_weights(choices: pd.DataFrame, market: Market, regrets: Mapping[str, Array], *, runs: str) -> Chart:
    """Draw the weight that each method chose in every draw, and the oracle's as a line.

    Args:
        choices: A row for each objective, method, purchase and draw.
        market: The mixtures.
        regrets: (mixtures,) the regret of every mixture, by objective.
        runs: The purchase of the laws that are drawn.
    """
    rows = _labelled(choices[choices["runs"].isin(["", runs])])
    best = {name: float(market.problem.mixtures[regret.argmin(), 0]) for name, regret in regrets.items()}
    return styled(*(_weights_panel(some, best[name], name) for name, some in _by_objective(rows)))


def _weights_panel(rows: pd.DataFrame, best: float, title: str) -> alt.LayerChart:
    oracle = alt.Chart(marks.data(pd.DataFrame({"weight": [best]}))).mark_rule()
    line = oracle.encode(y=alt.value(0), y2=alt.value("height"), color=alt.value(INK))
    ticks = alt.Chart(marks.data(rows)).mark_tick(thickness=2.5, opacity=0.5, size=14)
    title_x = "weight of the first task in each draw; the line is the oracle's"
    x = alt.X("weight:Q", title=title_x, scale=alt.Scale(domain=[0, 1]))
    return _panel(ticks, line, x=x, field="method", rows=rows, title=title)


def _by_objective(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    return [(str(name), some) for name, some in rows.groupby("objective", sort=False)]


def _labelled(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the family of each method, and name purchases."""
    return rows.assign(family=rows["method"].map(_family), runs=rows["runs"].replace("", NO_PURCHASE))


def _family(method: str) -> str:
    return next((family for family in FAMILIES if method.startswith(family)), "no runs")


def _panel(*layers: alt.Chart, x: alt.X, field: str, rows: pd.DataFrame, title: str) -> alt.LayerChart:
    """Return layers with a row for each method, in the order of the table."""
    axis = alt.Axis(labelLimit=320, grid=True)
    y = alt.Y(f"{field}:N", title=None, sort=list(dict.fromkeys(rows[field])), axis=axis)
    height = ROW * int(rows["method"].nunique())
    families = color("family", [*FAMILIES], [*FAMILIES.values()])
    return marks.panel(*layers, x=x, y=y, color=families, title=title, height=height)
