"""How long runs were trained, and whether a law that does not know it may compare them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mnmt_laws.tables.learning_curves import LENGTHS, run_names

ROUNDING = 0.01
"""Relative difference up to which two lengths of training count as one."""

_CELL = ["task", "weight", "mixture", "size", "encoder_size", "decoder_size", "unique_tokens"]


@dataclass(frozen=True, kw_only=True)
class Lengths:
    """The lengths of training of a table's runs."""

    column: str
    """`tokens`, or `step` where not every row has tokens; empty where not every row has steps either."""

    shortest: float
    longest: float

    by_run: pd.Series
    """The length of each row, named by its run, or by its row of the table where it has none."""

    within: bool
    """Whether runs of the same task, mixture and size differ in length by more than 1%."""

    between: bool
    """Whether such cells differ from each other by more than 1%."""

    first_pair: tuple[int, int] | None = None
    """Positions of the shortest and the longest row of the first cell that differs."""

    @property
    def differ(self) -> bool:
        """Whether any two runs differ in length by more than 1%."""
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
    column = next((name for name in LENGTHS if len(frame) and frame[name].notna().all()), "")
    length = frame[column] if column else pd.Series(np.nan, index=frame.index)
    cells = length.groupby([frame[name] for name in _CELL], dropna=False, sort=False)
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
    return int(positions[values.argmin()]), int(positions[values.argmax()])
