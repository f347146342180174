"""Measured points: the data of a chart, its marks, what a point tells, and which values were corrected."""

from __future__ import annotations

import json
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from mnmt_laws.answers.frontier import observed_pairs
from mnmt_laws.figures.style import MUTED, format_size, legend
from mnmt_laws.tables.observations import Observations

NOTE = "corrected for convergence"
MOST_POINTS = 2000
"""A chart of more points is thinned evenly."""

_RUN = ["run", "task", "size", "weight"]


def _circle(radius: float, *, hole: bool = False) -> str:
    sweep = 0 if hole else 1
    half = f"A{radius},{radius},0,1,{sweep},"
    return f"M{radius},0{half}-{radius},0{half}{radius},0Z"


RING = _circle(1) + _circle(0.68, hole=True)
LARGE_RING = _circle(1.5) + _circle(1.22, hole=True)
RINGED_DIAMOND = _circle(1.25) + _circle(1.02, hole=True) + "M0.62,0L0,0.62L-0.62,0L0,-0.62Z"
_RINGED_HOLE = RINGED_DIAMOND + "M0.3,0L0,-0.3L-0.3,0L0,0.3Z"
KINDS = {"trained": "circle", "held out": RING, NOTE: RINGED_DIAMOND, f"held out, {NOTE}": _RINGED_HOLE}
"""The mark of each kind of point."""

_TIPS = {
    "run": "run", "row": "row", "label": "model", "task": "task", "N": "size N", "D": "tokens D",
    "weight": "weight p", "mixture": "mixture", "step": "step", "seed": "seed",
}  # fmt: skip
_NUMBERS = {"measured": "measured", "predicted": "predicted"}
_INTERVALS = {"interval": "95% of the law", "predicted_interval": "95% of a new model"}


def data(frame: pd.DataFrame) -> alt.InlineData:
    """Return rows as the data of a chart, numbers with six digits; of any length, unlike Altair's own."""
    rounded = frame.assign(
        **{
            name: [float(f"{value:.6g}") for value in frame[name]]
            for name in frame.columns[[kind.kind == "f" for kind in frame.dtypes]]
        }
    )
    return alt.InlineData(values=json.loads(rounded.to_json(orient="records", double_precision=15)))


def tooltips(frame: pd.DataFrame, **titles: str) -> list[alt.Tooltip]:
    """Return what a point tells: the columns of `frame` that a reader knows or that `titles` name."""
    known = {**_TIPS, **titles, **_NUMBERS, **_INTERVALS, "kind": "this point"}
    present = [name for name in known if name in frame and _is_known(frame[name])]
    numeric = {name: pd.api.types.is_float_dtype(frame[name]) for name in present}
    return [(number_tip if numeric[name] else text_tip)(name, known[name]) for name in present]


def _is_known(column: pd.Series) -> bool:
    return bool((column.notna() & column.astype(str).ne("")).any())


def number_tip(field: str, title: str, pattern: str = ".4~g") -> alt.Tooltip:
    """Return a line of a tooltip that tells a number."""
    return alt.Tooltip(f"{field}:Q", title=title, format=pattern)


def text_tip(field: str, title: str) -> alt.Tooltip:
    """Return a line of a tooltip that tells a word."""
    return alt.Tooltip(f"{field}:N", title=title)


def describe(rows: pd.DataFrame, *, predicted: Any = None) -> pd.DataFrame:
    """Return rows with the columns that `tooltips` tells: sizes and intervals in words, kind, prediction.

    Rows without `kind` get the one that `role` and `corrected` say. Many rows are thinned; those that were
    held out or corrected stay.
    """
    rows = rows.assign(N=[format_size(size) for size in rows["size"]])
    if "tokens" in rows:
        rows = rows.assign(D=[format_size(count) if np.isfinite(count) else "" for count in rows["tokens"]])
    for name, low, high in (("interval", "lower", "upper"), ("predicted_interval", *PREDICTED)):
        if low in rows:
            rows[name] = [_words(*ends) for ends in zip(rows[low], rows[high], strict=True)]
    if predicted is not None:
        rows = rows.assign(predicted=np.asarray(predicted, float))
    return thin(rows if "kind" in rows else rows.assign(kind=_kinds(rows)))


PREDICTED = ("predicted_lower", "predicted_upper")
"""The columns of prediction intervals, for a model yet to be trained."""


def _words(low: float, high: float) -> str:
    return f"{low:.4g} to {high:.4g}" if np.isfinite(low) and np.isfinite(high) else ""


def _kinds(rows: pd.DataFrame) -> list[str]:
    held_out = rows["role"].eq("held-out") if "role" in rows else pd.Series(False, index=rows.index)
    names = {(True, True): f"held out, {NOTE}", (True, False): "held out", (False, True): NOTE}
    pairs = zip(held_out, corrected_rows(rows), strict=True)
    return [names.get((bool(role), bool(corrected)), "trained") for role, corrected in pairs]


def thin(rows: pd.DataFrame, most: int = MOST_POINTS) -> pd.DataFrame:
    """Return at most `most` rows, evenly spread, and all that are no ordinary ones."""
    if len(rows) <= most:
        return rows
    ordinary = rows["kind"].eq("trained") if "kind" in rows else pd.Series(True, index=rows.index)
    step = -(-int(ordinary.sum()) // most)
    return rows[~ordinary | (ordinary.cumsum() % step == 1 % step)]


def mark_points(
    rows: pd.DataFrame, x: alt.X, y: alt.Y, color: Any, *, kinds: dict[str, str] | None = None, **titles: str
) -> alt.Chart:
    """Return measured points in the marks of their kinds; each tells on hover what it is."""
    marks = KINDS if kinds is None else kinds
    present = [kind for kind in marks if (rows["kind"] == kind).any()]
    scale = alt.Scale(domain=present, range=[marks[kind] for kind in present])
    key = (
        None
        if len(present) < 2 and not {*present} - {"trained", "measured"}
        else legend(present, symbolFillColor=MUTED)
    )
    shape = alt.Shape("kind:N", scale=scale, legend=key)
    chart = alt.Chart(data(rows)).mark_point(filled=True, strokeWidth=0)
    return chart.encode(x=x, y=y, color=color, shape=shape, tooltip=tooltips(rows, **titles))


def mark_band(rows: pd.DataFrame, x: alt.X, y: alt.Y, color: Any, *, ends: tuple[str, str]) -> alt.Chart:
    """Return the band between two columns over x; that of prediction intervals is lighter."""
    band = alt.Chart(data(rows)).mark_area(opacity=0.09 if ends == PREDICTED else 0.2, clip=True)
    return band.encode(x=x, y=with_field(y, ends[0]), y2=f"{ends[1]}:Q", color=color)


def with_field(axis: alt.Y, field: str) -> alt.Y:
    """Return the same axis of another column."""
    other = axis.copy()
    other.shorthand = f"{field}:Q"
    return other


def corrected_rows(rows: pd.DataFrame) -> pd.Series:
    """Return for each row whether its value was read at the horizon of its learning curve."""
    if "corrected" not in rows:
        return pd.Series(False, index=rows.index)
    return rows["corrected"].fillna(False).astype(bool)


def mark_corrected(rows: pd.DataFrame, observed: pd.DataFrame) -> pd.DataFrame:
    """Add the column `corrected` to rows, looked up among the observations by run, task, size and weight."""
    corrected = observed[corrected_rows(observed)]
    index = pd.MultiIndex.from_frame(corrected[_RUN])
    return rows.assign(corrected=pd.MultiIndex.from_frame(rows[_RUN]).isin(index))


def marked_pairs(observations: Observations) -> pd.DataFrame:
    """Return `observed_pairs` with the column `corrected`: whether any value of a model was corrected."""
    first, pairs, frame = observations.tasks[0], observed_pairs(observations), observations.frame
    rows = frame[corrected_rows(frame)]
    share = rows["weight"].where(rows["task"] == first, 1 - rows["weight"]).round(6)
    corrected = pd.MultiIndex.from_arrays([rows["size"], share, rows["role"]])
    models = pd.MultiIndex.from_frame(pairs[["size", "weight", "role"]])
    return pairs.assign(corrected=models.isin(corrected))
