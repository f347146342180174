"""Student's 95% intervals of runs and of their means, by a variance over seeds that cells of runs share."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import pandas as pd
from pandas.api.typing import SeriesGroupBy
from scipy.stats import t as student

Numbers = TypeVar("Numbers", float, pd.Series)


def half_interval(variance: Numbers, freedom: Numbers | int) -> Numbers:
    """Return half of the interval of a value by its estimated variance; NaN without degrees of freedom."""
    half: Numbers = np.sqrt(variance) * student.ppf(0.975, freedom)
    return half


def pooled(cells: SeriesGroupBy) -> tuple[float, int]:
    """Return the variance over the runs of a cell, pooled over all cells, and its degrees of freedom."""
    freedom = cells.count() - 1
    return float((cells.var() * freedom).sum() / freedom.sum()), int(freedom.sum())


def half_of_a_run(cells: SeriesGroupBy) -> float:
    """Return half of the interval of one run, by the pooled variance; that of a mean of n runs is √n less."""
    return half_interval(*pooled(cells))


def means_of(groups: SeriesGroupBy) -> pd.DataFrame:
    """Return the `mean` of each group of independent values, `lower` and `upper` ends, and their `count`."""
    table = groups.agg(["mean", "sem", "count"])
    half = half_interval(table.pop("sem") ** 2, table["count"] - 1)
    return table.assign(lower=table["mean"] - half, upper=table["mean"] + half)


def ratios_of(logs: pd.Series, half: pd.Series) -> pd.DataFrame:
    """Return ratios with their intervals, a row for each of their logarithms."""
    ends = {"ratio": logs, "lower": logs - half, "upper": logs + half}
    return pd.DataFrame(np.exp(pd.DataFrame(ends))).reset_index()
