"""The rival of small models: a few runs of the target itself, of one seed, at weights spread evenly."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures
from studies.analysis.decisions.tables import Table
from studies.analysis.decisions.wants import LEAST

OWN = "runs of the target"
COUNTS = (2, 3, 5)


def trials_of(table: Table) -> Iterator[Figures]:
    """Yield the weight that a few runs of each seed choose for every want."""
    for seed, rows in table.judges.groupby("seed"):
        for count in COUNTS:
            trained = _spread(table, rows, count)
            key = {"table": table.name, "small": OWN, "seed": seed, "method": f"{count} runs"}
            yield from (key | {"want": wish.name, "weight": wish.best(trained)} for wish in table.wishes)


def _spread(table: Table, rows: pd.DataFrame, count: int) -> pd.DataFrame:
    """Return the runs at weights of the first task nearest to even ones."""
    weights = table.first_weights(rows)
    even = np.linspace(LEAST, 1 - LEAST, count)
    return rows[weights.isin([weights.iloc[(weights - near).abs().argmin()] for near in even])]
