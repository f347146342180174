"""The learning rate as a rival: the best rate of each model, and what exponents are there."""

from __future__ import annotations

import numpy as np
import pandas as pd

from studies.analysis.rates import CELL, at_best_rates
from studies.analysis.splitting.tables import read

BY_RATE = "rates-8000"
"""The table of several rates, of some sizes and weights of the main study."""
USUAL_RATE = 0.05
"""The rate of the tables whose runs' names tell none."""


def tables() -> dict[str, pd.DataFrame]:
    """Return the losses that are compared: at the best rates, and at eight weights and one rate."""
    return {"best rates": at_best_rates(read(BY_RATE), "reducible"), "one rate": read("unrelated")}


def rates() -> pd.DataFrame:
    """Return each model's best rate, and the factor by which the usual rate's loss is above the least.

    The best rate is `at the edge` if it is the least or the largest tried: a better one may lie beyond.
    """
    logs = read(BY_RATE).groupby([*CELL, "rate"])["log"].mean().unstack("rate")
    best, tried = logs.idxmin(axis=1), logs.notna()
    ends = tried.idxmax(axis=1), tried.iloc[:, ::-1].idxmax(axis=1)
    lost = np.exp(logs[USUAL_RATE] - logs.min(axis=1))
    edge = best.eq(ends[0]) | best.eq(ends[1])
    return pd.DataFrame({"best rate": best, "lost": lost, "at the edge": edge}).reset_index()
