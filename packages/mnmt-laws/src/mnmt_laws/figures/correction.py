"""Which points a figure marks as corrected for convergence."""

from __future__ import annotations

from collections.abc import Collection

import pandas as pd
from matplotlib.lines import Line2D

from mnmt_laws.figures.style import CORRECTED, handle

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


def point_marker(*, corrected: bool, otherwise: str = "o") -> object:
    """The marker of a measured point."""
    return CORRECTED if corrected else otherwise


def correction_key(corrected: Collection[bool]) -> list[Line2D]:
    """The legend entry, where any point is corrected."""
    return [handle(NOTE, marker=CORRECTED)] if any(corrected) else []
