"""Rival laws side by side, and intervals by several methods."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from mnmt_laws.figures.points import data, number_tip, text_tip
from mnmt_laws.figures.style import EDGE, INK, Chart, color, styled

SYMBOLS = {"alpha": "α", "beta": "β", "l_inf": "L∞", "c1": "c₁", "c2": "c₂", "c3": "c₃"}
_ERRORS = {
    "size_error": "error at the largest size, left out",
    "length_error": "error at the longest training, left out",
    "weight_error": "error at weights left out",
    "mixture_error": "error at mixtures left out",
}
_PANEL_WIDTH = 230  # pixels, in a file
_MOST_TASKS = 4  # that get a line of their own within the row of a law


def draw_comparison(table: pd.DataFrame, *, criterion: str = "bic") -> Chart:
    """Draw the information criterion above the best law's and errors on left-out runs, a row for each law.

    Args:
        table: A row for each (task, law), as `Comparison.table`: `task`, `law`, `label`, `bic` or `aic`, and
            any of `size_error`, `length_error`, `weight_error`, `mixture_error`; NaN is left blank.
        criterion: `bic` or `aic`.

    Raises:
        ValueError: If the criterion is unknown.
    """
    if criterion not in ("aic", "bic"):
        raise ValueError(f"`criterion` must be aic or bic, but is {criterion!r}.")
    best = table.groupby("task")[criterion].transform("min")
    rows = table.assign(excess=table[criterion] - best)
    panels = [_law_panel(rows, "excess", f"Δ{criterion.upper()}", log=True)]
    errors = {name: title for name, title in _ERRORS.items() if name in table and table[name].notna().any()}
    panels += [_law_panel(rows, name, title, log=False) for name, title in errors.items()]
    return styled(*panels, columns=len(panels))


def _law_panel(table: pd.DataFrame, column: str, title: str, *, log: bool) -> alt.LayerChart:
    rows = table.assign(value=table[column], zero=0.0)[["task", "label", "value", "zero"]]
    labels, tasks = list(dict.fromkeys(rows["label"])), sorted(rows["task"].unique())
    greatest = max(2.0 if log else 0.0, float(rows["value"].max()))
    ticks = [tick for tick in (0, 2, 10, 100, 1000, 10000, 100000) if tick <= 3 * greatest]
    scale = {"type": "symlog", "constant": 2} if log else {}
    axis = (
        alt.Axis(values=ticks, labelExpr="format(datum.value, ',')")
        if log
        else alt.Axis(format="~%", tickCount=5)
    )
    x = alt.X(
        "value:Q", title=title, axis=axis, scale=alt.Scale(domain=[0, 1.1 * greatest], nice=False, **scale)
    )
    tips = [
        text_tip("label", "law"),
        text_tip("task", "task"),
        number_tip("value", title, ".4~g" if log else ".2%"),
    ]
    base = alt.Chart(data(rows.dropna(subset=["value"]))).encode(
        **_row("label", labels, "task", tasks), tooltip=tips
    )
    stems = base.mark_rule(opacity=0.45).encode(x=x, x2="zero:Q")
    layers = [stems] if len(tasks) <= _MOST_TASKS else []
    return alt.layer(*layers, base.mark_point(size=60, opacity=1 if layers else 0.6).encode(x=x)).properties(
        width=_PANEL_WIDTH, height=_height(len(labels), len(tasks))
    )


def draw_intervals(table: pd.DataFrame) -> Chart:
    """Draw intervals of each parameter in a panel, a row for each task and an interval for each method.

    Args:
        table: Columns `task`, `parameter`, `method`, `estimate`, `lower` and `upper`; unknown bounds NaN.
    """
    tasks, methods = sorted(table["task"].unique()), list(dict.fromkeys(table["method"]))
    parts = [(name, table[table["parameter"] == name]) for name in dict.fromkeys(table["parameter"])]
    panels = [_interval_panel(rows, SYMBOLS.get(name, name), tasks, methods) for name, rows in parts]
    return styled(*panels, columns=3)


def _interval_panel(rows: pd.DataFrame, title: str, tasks: list[str], methods: list[str]) -> alt.LayerChart:
    names = ("estimate", "lower", "upper")
    tips = ["task:N", "method:N", *(number_tip(name, name, ".4~g") for name in names)]
    rows = rows[["task", "method", *names]]
    scale = alt.Scale(zero=False, padding=8)
    x = alt.X("estimate:Q", title=title, scale=scale, axis=alt.Axis(tickCount=5))
    places = _row("task", tasks, "method", methods)
    base = alt.Chart(data(rows)).encode(**places, tooltip=tips)
    bars = base.transform_filter("isValid(datum.lower) && isValid(datum.upper)").mark_rule(strokeWidth=2.2)
    bars = bars.encode(x=alt.X("lower:Q", title=title, scale=scale), x2="upper:Q")
    return alt.layer(bars, base.mark_point(size=60).encode(x=x)).properties(
        width=_PANEL_WIDTH, height=_height(len(tasks), len(methods))
    )


def _row(field: str, labels: list[str], key: str, groups: list[str]) -> dict[str, Any]:
    """Return a row for each label, and within it a line for each group, if these are few."""
    lines = {"grid": True, "gridColor": EDGE, "gridOpacity": 0.35, "bandPosition": 1}
    axis = alt.Axis(title=None, labelColor=INK, ticks=False, labelPadding=10, domain=False, **lines)
    y = alt.Y(f"{field}:N", sort=labels, axis=axis, scale=alt.Scale(paddingInner=0.3, paddingOuter=0.15))
    places = {"y": y, "color": color(key, groups)}
    if 1 < len(groups) <= _MOST_TASKS:
        places["yOffset"] = alt.YOffset(f"{key}:N", sort=groups, scale=alt.Scale(domain=groups, padding=0.2))
    return places


def _height(rows: int, groups: int) -> int:
    return rows * max(28, 10 + 12 * (groups if groups <= _MOST_TASKS else 1))
