"""Rival laws side by side."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from mnmt_laws.figures import marks
from mnmt_laws.figures.style import EDGE, INK, Chart, color, styled

SYMBOLS = {"alpha": "α", "beta": "β", "l_inf": "L∞", "c1": "c₁", "c2": "c₂", "c3": "c₃"}
_PANEL_WIDTH = 460  # pixels, in a file
_MOST_TASKS = 4  # that get separate lines within a row


def draw_comparison(table: pd.DataFrame) -> Chart:
    """Draw BIC above the best law's, a row for each law.

    Args:
        table: A row for each (task, law), as `LawComparison.table`: `task`, `law`, `label` and `bic`.
    """
    excess = table["bic"] - table.groupby("task")["bic"].transform("min")
    rows = table[["task", "label"]].assign(value=excess, zero=0.0)
    greatest = 1.1 * max(2.0, float(excess.max()))
    ticks = [tick for tick in (0, 2, 10, 100, 1000, 10000, 100000) if tick <= greatest]
    axis = alt.Axis(values=ticks, labelExpr="format(datum.value, ',')")
    scale = alt.Scale(domain=[0, greatest], nice=False, type="symlog", constant=2)
    titles = {"label": "law", "task": "task", "value": "ΔBIC"}
    base = alt.Chart(marks.data(rows.dropna(subset="value")))
    base = marks.with_tooltips(base, rows, titles, ".4~g")
    is_sparse = rows["task"].nunique() <= _MOST_TASKS
    layers = [base.mark_rule(opacity=0.45).encode(x2="zero:Q")] if is_sparse else []
    x = alt.X("value:Q", title="ΔBIC", axis=axis, scale=scale)
    points = base.mark_point(size=60, opacity=1 if is_sparse else 0.6)
    return styled(_rows_panel(*layers, points, x=x, rows=rows))


def _rows_panel(*layers: alt.Chart, x: alt.X, rows: pd.DataFrame) -> alt.LayerChart:
    """Return a panel with a row for each law, and in it a line for each task if these are few."""
    labels, tasks = list(dict.fromkeys(rows["label"])), sorted(rows["task"].unique())
    lines: dict[str, Any] = {"grid": True, "gridColor": EDGE, "gridOpacity": 0.35, "bandPosition": 1}
    axis = alt.Axis(title=None, labelColor=INK, ticks=False, labelPadding=10, domain=False, **lines)
    y = alt.Y("label:N", sort=labels, axis=axis, scale=alt.Scale(paddingInner=0.3, paddingOuter=0.15))
    few = len(tasks) <= _MOST_TASKS
    height = len(labels) * max(28, 10 + 12 * (len(tasks) if few else 1))
    chart = marks.panel(*layers, x=x, y=y, color=color("task", tasks), width=_PANEL_WIDTH, height=height)
    scale = alt.Scale(domain=tasks, padding=0.2)
    return chart.encode(yOffset=alt.YOffset("task:N", sort=tasks, scale=scale)) if few else chart
