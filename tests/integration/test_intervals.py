"""Intervals over seeds are those of a linear model with a level for each cell of runs."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats


@pytest.fixture
def intervals(analysis):
    return analysis("intervals")


def test_cells_of_unequal_counts_are_pooled_as_least_squares_does(intervals):
    cell = np.repeat([0, 1, 2, 3], [1, 2, 3, 5])
    values = np.random.default_rng(0).normal(size=len(cell)) + 10 * cell
    _, (squares,), *_ = np.linalg.lstsq(np.eye(4)[cell], values)
    variance, freedom = intervals.pooled(pd.Series(values).groupby(cell))
    assert (variance, freedom) == (pytest.approx(squares / 7), 7)


def test_the_interval_of_the_mean_of_one_cell_is_students(intervals):
    values = pd.Series([1.0, 1.5, 0.2, 0.9])
    ends = stats.t.interval(0.95, 3, values.mean(), stats.sem(values))
    cell = values.groupby([0] * 4)
    half = intervals.half_of_a_run(cell) / 2
    assert (values.mean() - half, values.mean() + half) == pytest.approx(ends)
    (row,) = intervals.means_of(cell).to_dict("records")
    assert row == pytest.approx({"mean": values.mean(), "count": 4, "lower": ends[0], "upper": ends[1]})
