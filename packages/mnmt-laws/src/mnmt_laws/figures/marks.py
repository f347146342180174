"""The parts of a panel: lines, bands, bars, and points with tooltips."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from mnmt_laws.figures.style import HEIGHT, MUTED, WIDTH, format_size, legend

SOLID, DOTTED, DASHED = [1, 0], [2, 3], [6, 4]
LAW, PREDICTED = ("lower", "upper"), ("predicted_lower", "predicted_upper")
"""The columns of a law's interval, and of that of a model yet to be trained."""
MOST_POINTS = 2000
"""More points are thinned evenly."""


def _circle(radius: float, *, hole: bool = False) -> str:
    half = f"A{radius},{radius},0,1,{0 if hole else 1},"
    return f"M{radius},0{half}-{radius},0{half}{radius},0Z"


RING = _circle(1) + _circle(0.68, hole=True)
KINDS = {"trained": "circle", "held out": RING}
"""The mark of each kind of point."""

_TITLES = {
    "run": "run", "row": "row", "label": "model", "task": "task", "N": "size N", "D": "tokens D",
    "weight": "weight p", "mixture": "mixture", "step": "step", "seed": "seed", "measured": "measured",
    "predicted": "predicted", "interval": "95% of the law", "predicted_interval": "95% of a new model",
    "kind": "this point",
}  # fmt: skip
_DRAWN = {
    "size",
    "tokens",
    "flops",
    "weight",
    "exposure",
    "value",
    "measured",
    "first",
    "second",
    "p",
    "line",
    "task",
}
"""Columns of axes and colours; a chart carries others only for tooltips and intervals."""


def panel(
    *layers: alt.Chart,
    x: alt.X,
    y: alt.Y,
    color: Any,
    title: str = "",
    width: int = WIDTH,
    height: int = HEIGHT,
) -> alt.LayerChart:
    """Return layers that share axes and colours."""
    chart = alt.LayerChart(layer=list(layers), title=title, width=width, height=height)
    return chart.encode(x=x, y=y, color=color)


def data(frame: pd.DataFrame) -> alt.InlineData:
    """Return rows as the data of a chart, numbers with six digits; of any length, unlike Altair's own."""
    floats = frame.select_dtypes("float").map(lambda value: float(f"{value:.6g}"))
    rows = frame.assign(**floats).to_json(orient="records", double_precision=15)
    return alt.InlineData(values=json.loads(rows))


def with_tooltips(
    chart: alt.Chart, rows: pd.DataFrame, titles: Mapping[str, str], pattern: str = ".4~g"
) -> alt.Chart:
    """Return marks with tooltips of the columns that have values, numbers in a pattern."""
    tips = []
    for name, title in titles.items():
        if name in rows and (rows[name].notna() & rows[name].astype(str).ne("")).any():
            is_number = pd.api.types.is_float_dtype(rows[name])
            number = alt.Tooltip(f"{name}:Q", title=title, format=pattern)
            tips.append(number if is_number else alt.Tooltip(f"{name}:N", title=title))
    marks: alt.Chart = chart.encode(tooltip=tips)
    return marks


def lines(frame: pd.DataFrame, *, dash: Any = alt.Undefined, **look: Any) -> alt.Chart:
    """Return a smooth line for each value of the column `line`."""
    chart = alt.Chart(data(frame)).mark_line(**{"interpolate": "monotone", "clip": True, **look})
    line: alt.Chart = chart.encode(strokeDash=dash, detail="line:N")
    return line


def reference(line: str = "", **columns: ArrayLike) -> alt.Chart:
    """Return a dashed line through some points, by the names of the columns of the axes."""
    chart = lines(pd.DataFrame({**columns, "line": line}), strokeDash=[5, 4], strokeWidth=1.2)
    dashed: alt.Chart = chart if line else chart.encode(color=alt.value(MUTED))
    return dashed


def bands(frame: pd.DataFrame) -> list[alt.Chart]:
    """Return the band of each interval among the columns; that of a new model is lighter."""
    return [
        alt.Chart(_interval_data(frame, low, high))
        .mark_area(opacity=0.2 if low == LAW[0] else 0.1, clip=True)
        .encode(y=f"{low}:Q", y2=f"{high}:Q")
        for low, high in _known_intervals(frame)
    ]


def bars(frame: pd.DataFrame) -> list[alt.Chart]:
    """Return the upright bar of each interval among the columns; that of a new model is lighter."""
    return [
        alt.Chart(_interval_data(frame, low, high))
        .mark_rule(opacity=0.9 if low == LAW[0] else 0.3, strokeWidth=1.5 if low == LAW[0] else 5)
        .encode(y=f"{low}:Q", y2=f"{high}:Q")
        for low, high in _known_intervals(frame)
    ]


def _interval_data(frame: pd.DataFrame, *ends: str) -> alt.InlineData:
    columns = [name for name in frame if name in _DRAWN or name in ends]
    return data(frame.loc[frame[ends[0]].notna(), columns])


def _known_intervals(frame: pd.DataFrame) -> list[tuple[str, str]]:
    return [ends for ends in (PREDICTED, LAW) if ends[0] in frame and frame[ends[0]].notna().any()]


def points(rows: pd.DataFrame, *, kinds: Mapping[str, str] = KINDS, **titles: str) -> alt.Chart:
    """Return a mark for each row, in the shape of its `kind`, with tooltips."""
    present = [kind for kind in kinds if (rows["kind"] == kind).any()]
    scale = alt.Scale(domain=present, range=[kinds[kind] for kind in present])
    is_plain = len(present) < 2 and set(present) <= {"trained", "measured"}
    key = None if is_plain else legend(present, symbolFillColor=MUTED)
    shape = alt.Shape("kind:N", scale=scale, legend=key)
    titles = {**_TITLES, **titles}
    columns = rows[[name for name in rows if name in titles or name in _DRAWN]]
    chart: alt.Chart = alt.Chart(data(columns)).mark_point(filled=True, strokeWidth=0).encode(shape=shape)
    return with_tooltips(chart, columns, titles)


def describe(rows: pd.DataFrame, **columns: Any) -> pd.DataFrame:
    """Return rows with further columns and the texts of tooltips: kind, sizes and intervals.

    Many rows are thinned; held-out ones stay.
    """
    rows = rows.assign(**columns)
    for name, column in (("N", "size"), ("D", "tokens")):
        if column in rows:
            rows[name] = [format_size(count) if np.isfinite(count) else "" for count in rows[column]]
    for name, ends in (("interval", LAW), ("predicted_interval", PREDICTED)):
        if ends[0] in rows:
            pairs = rows[[*ends]].to_numpy(float)
            rows[name] = [f"{low:.4g} to {high:.4g}" if np.isfinite(low) else "" for low, high in pairs]
    return _thin(rows if "kind" in rows else rows.assign(kind=_kinds(rows)))


def _kinds(rows: pd.DataFrame) -> list[str]:
    held_out = rows["role"].eq("held-out") if "role" in rows else pd.Series(False, index=rows.index)
    return ["held out" if held else "trained" for held in held_out]


def _thin(rows: pd.DataFrame) -> pd.DataFrame:
    """Return at most `MOST_POINTS` ordinary rows, evenly spread, and all others."""
    if len(rows) <= MOST_POINTS:
        return rows
    ordinary = rows["kind"].eq(rows["kind"].mode().iloc[0])
    step = -(-int(ordinary.sum()) // MOST_POINTS)
    return rows[~ordinary | (ordinary.cumsum() % step == 0)]
