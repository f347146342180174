"""Measured points: their markers, their legend entries, and which of them were corrected for convergence."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.path import Path as Outline

from mnmt_laws.answers.frontier import observed_pairs
from mnmt_laws.figures.style import MARKER_SIZE, MUTED
from mnmt_laws.tables.observations import Observations

NOTE = "corrected for convergence"
_RUN = ["run", "task", "size", "weight"]


def _ringed_diamond() -> Outline:
    """Return a diamond within a ring."""
    turn = np.pi / 2 * np.arange(5)
    diamond = Outline(0.52 * np.column_stack([np.cos(turn), np.sin(turn)]), closed=True)
    circle = Outline.unit_circle()
    points, codes = np.asarray(circle.vertices), np.asarray(circle.codes)
    hole = Outline(0.82 * points[-2::-1], codes[:-1])  # the other way round, so that it stays empty
    return Outline.make_compound_path(diamond, circle, hole)


CORRECTED = _ringed_diamond()
"""The marker of values that were corrected for convergence."""


def draw_point(
    axes: Axes, x: float, y: float, color: object, *, marker: object = "o", hollow: bool = False
) -> None:
    """Draw a measured point; a hollow one was held out."""
    (point,) = axes.plot(x, y, linestyle="none", color=color, zorder=3)
    point.set(marker=marker, markersize=marker_size(marker), markerfacecolor="white" if hollow else color)
    point.set_markeredgewidth(0.9 if marker is CORRECTED else 1.3)


def marker_size(marker: object) -> float:
    """Return the size at which a marker looks as large as the others."""
    return 10.5 if marker is CORRECTED else MARKER_SIZE


def handle(
    label: str, color: object = MUTED, *, line: str = "", marker: object = "", hollow: bool = False
) -> Line2D:
    """Return a legend entry."""
    entry = Line2D([], [], color=color, linestyle=line or "none", label=label)  # type: ignore[arg-type]
    entry.set(marker=marker, markersize=marker_size(marker), markerfacecolor="white" if hollow else color)
    return entry


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


def point_marker(*, corrected: bool, otherwise: str = "o") -> object:
    """Return the marker of a measured point."""
    return CORRECTED if corrected else otherwise


def correction_key(corrected: Collection[bool]) -> list[Line2D]:
    """Return the legend entry of corrected points, if there are any."""
    return [handle(NOTE, marker=CORRECTED)] if any(corrected) else []
