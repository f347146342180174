"""Learning rates that runs have in their names (`d12-rate-02`), and the best one of each model."""

from __future__ import annotations

import numpy as np
import pandas as pd

CELL = ["task", "size", "weight", "step"]
"""What the seeds and the rates of a model have in common."""


def rates_of(runs: pd.Series) -> pd.Series:
    """Return the learning rate that each run's name tells; NaN where it tells none."""
    return ("0." + runs.str.extract(r"-rate-(\d+)_")[0]).astype(float)


def at_best_rates(rows: pd.DataFrame, column: str = "value") -> pd.DataFrame:
    """Return the rows of each model and length at the `rate` whose geometric mean of a column is least."""
    keys = [*CELL, "rate"]
    best = np.log(rows[column]).groupby([rows[key] for key in keys]).mean().groupby(level=CELL).idxmin()
    return rows[pd.MultiIndex.from_frame(rows[keys]).isin(best)]
