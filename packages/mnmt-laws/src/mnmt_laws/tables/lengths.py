"""The training lengths of a table's runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mnmt_laws.arrays import Array

LENGTHS = ("tokens", "step")

ROUNDING = 0.02
"""Relative difference up to which two training lengths of one model count as one: batches hold whole
sentences, so that runs of equal steps differ in their tokens by a percent or two."""

CELL = ["task", "weight", "mixture", "size", "encoder_size", "decoder_size", "unique_tokens"]
"""Columns in which runs agree that differ only in their seed or length."""


def level_numbers(
    values: Array, *, rounding: float, groups: NDArray[np.integer[Any]] | None = None
) -> NDArray[np.int64]:
    """Return (n,) the number of each value's level, in ascending order within each group.

    A level begins at each value that lies more than `rounding`, a relative difference, above the one before.
    Unknown values form a level.

    Args:
        values: (n,) lengths or sizes; NaN where unknown.
        rounding: The relative difference.
        groups: (n,) number of the group of each value; by default all are in one.
    """
    group = np.zeros(len(values), dtype=np.int64) if groups is None else groups
    order = np.lexsort((values, group))  # NaN last
    value, group = values[order], group[order]
    first = np.ones(len(values), dtype=bool)
    first[1:] = group[1:] != group[:-1]
    begins = first.copy()
    begins[1:] |= (value[1:] > (1 + rounding) * value[:-1]) | (np.isnan(value[1:]) & ~np.isnan(value[:-1]))
    count = np.cumsum(begins) - 1
    start = np.maximum.accumulate(np.where(first, count, 0))
    levels = np.empty(len(values), dtype=np.int64)
    levels[order] = count - start
    return levels


def typical_lengths(values: Array, *, rounding: float = ROUNDING) -> Array:
    """Return (n,) the median of the values that count as one with each; NaN where a value is unknown.

    From the smallest on, all values up to `rounding` above the first count as one, so none differ by more.

    Args:
        values: (n,) lengths; NaN where unknown.
        rounding: The relative difference.
    """
    firsts, ordered = [], np.unique(values[~np.isnan(values)])
    while len(ordered):
        firsts.append(ordered[0])
        ordered = ordered[ordered > (1 + rounding) * ordered[0]]
    levels = np.searchsorted(firsts, values, side="right")
    levels[np.isnan(values)] = 0
    return pd.Series(values).groupby(levels).transform("median").to_numpy(float)


def run_names(rows: pd.DataFrame) -> pd.Series:
    """Return the run of each row, or `row 5` where it has none."""
    return rows["run"].where(rows["run"] != "", "row " + rows["row"].astype(str))


@dataclass(frozen=True, kw_only=True)
class Lengths:
    """The lengths of training of a table's runs."""

    column: str
    """`tokens` or `step`, whichever more rows have; empty where none has either."""

    shortest: float
    longest: float

    by_run: pd.Series
    """The length of each row, NaN if unknown, named by its run, or by its row of the table if it has none."""

    within: bool
    """Whether runs of the same task, mixture and size differ in length by more than 2%."""

    between: bool
    """Whether such cells differ from each other by more than 2%."""

    first_pair: tuple[int, int] | None = None
    """Positions of the shortest and the longest row of the first cell that differs."""

    @property
    def differ(self) -> bool:
        """Whether any two runs differ in length by more than 2%."""
        return self.within or self.between

    @property
    def unit(self) -> str:
        """`tokens` or `steps`."""
        return "steps" if self.column == "step" else self.column

    def describe(self) -> str:
        """Return the range in a phrase: `1.28e+05 to 8.192e+06 tokens`."""
        return f"{self.shortest:.4g} to {self.longest:.4g} {self.unit}"


def measure_lengths(frame: pd.DataFrame) -> Lengths:
    """Return the lengths of training of a table's rows."""
    present = {name: frame[name].notna().sum() for name in LENGTHS if frame[name].notna().any()}
    column = max(present, key=lambda name: present[name]) if present else ""
    length = frame[column] if column else pd.Series(np.nan, index=frame.index)
    cells = length.groupby([frame[name] for name in CELL], dropna=False, sort=False)
    widest = (cells.transform("max") > (1 + ROUNDING) * cells.transform("min")).to_numpy()
    medians = cells.median()
    return Lengths(
        column=column,
        shortest=float(length.min()),
        longest=float(length.max()),
        by_run=pd.Series(
            length.to_numpy(float), index=pd.Index(run_names(frame), name="run"), name=column or None
        ),
        within=bool(widest.any()),
        between=bool(medians.max() > (1 + ROUNDING) * medians.min()),
        first_pair=_pair(cells, length, widest),
    )


def _pair(
    cells: Any,
    length: pd.Series,
    widest: np.ndarray[tuple[int], np.dtype[np.bool_]],
) -> tuple[int, int] | None:
    if not widest.any():
        return None
    same = (cells.ngroup() == cells.ngroup().iloc[int(widest.argmax())]).to_numpy()
    positions = np.flatnonzero(same)
    values = length.to_numpy()[positions]
    return int(positions[np.nanargmin(values)]), int(positions[np.nanargmax(values)])
