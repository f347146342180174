"""Which points a figure marks as corrected for convergence."""

from __future__ import annotations

from collections.abc import Collection

import pandas as pd
from matplotlib.lines import Line2D

from mnmt_laws.answers.frontier import observed_pairs
from mnmt_laws.figures.style import CORRECTED, handle
from mnmt_laws.tables.observations import Observations

NOTE = "corrected for convergence"

_WHERE = ["run", "task", "size", "weight"]


def corrected_rows(rows: pd.DataFrame) -> pd.Series:
    """Whether each row's value was read at the horizon of its learning curve; none without such a column."""
    if "corrected" not in rows:
        return pd.Series(False, index=rows.index)
    return rows["corrected"].fillna(False).astype(bool)


def mark_corrected(rows: pd.DataFrame, observed: pd.DataFrame) -> pd.DataFrame:
    """`rows` with the column `corrected`, looked up among observations by run, task, size and weight."""
    marked = observed[corrected_rows(observed)]
    known = pd.MultiIndex.from_frame(marked[_WHERE])
    return rows.assign(corrected=pd.MultiIndex.from_frame(rows[_WHERE]).isin(known))


def marked_pairs(observations: Observations) -> pd.DataFrame:
    """`observed_pairs` with `corrected`: whether any value of a model was corrected for convergence."""
    first, pairs, frame = observations.tasks[0], observed_pairs(observations), observations.frame
    rows = frame[corrected_rows(frame)]
    share = rows["weight"].where(rows["task"] == first, 1 - rows["weight"]).round(6)
    known = pd.MultiIndex.from_arrays([rows["size"], share, rows["role"]])
    where = pd.MultiIndex.from_frame(pairs[["size", "weight", "role"]])
    return pairs.assign(corrected=where.isin(known))


def point_marker(*, corrected: bool, otherwise: str = "o") -> object:
    """The marker of a measured point."""
    return CORRECTED if corrected else otherwise


def correction_key(corrected: Collection[bool]) -> list[Line2D]:
    """The legend entry, where any point is corrected."""
    return [handle(NOTE, marker=CORRECTED)] if any(corrected) else []
