"""Into one language against out of one: the same made lexicons, translated the other way round."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import t as student

from studies.analysis.splitting.fractions import ratios
from studies.analysis.splitting.tables import read, tables

INTO, OUT = "many-to-one", "lexicon"


def direction(*, refits: int) -> list[dict[str, object]]:
    """Return how many times as large f is into one language as out of it, with a 95% interval over seeds."""
    if not {INTO, OUT} <= set(tables()):
        return []
    out = read(OUT)
    tasks = sorted(out["task"].unique())
    return [row for task in tasks for row in ratios(read_into(), out, task=task, refits=refits)]


def read_into() -> pd.DataFrame:
    """Return the table of translation into one language, its tasks named as those of the other direction."""
    rows = read(INTO)
    for column in ("task", "mixture"):
        rows[column] = rows[column].str.replace(r"(\w+)-xx", r"xx-\1", regex=True)
    return rows


def direction_by_size() -> pd.DataFrame:
    """Return without a law what sharing costs into one language over what it costs out of it.

    The cost is the reducible loss at a weight over that alone, of one size, task and seed; below 1 the
    direction into one language loses less. Geometric means over tasks and seeds with Student's 95% intervals.
    """
    if not {INTO, OUT} <= set(tables()):
        return pd.DataFrame()
    logs = log_costs(read_into()) - log_costs(read(OUT))
    groups = logs.groupby(level=["size", "weight"])
    means, counts = groups.mean(), groups.size()
    errors = groups.std() / counts**0.5 * student.ppf(0.975, counts - 1)
    low, high = np.exp(means - errors), np.exp(means + errors)
    return pd.DataFrame({"ratio": np.exp(means), "lower": low, "upper": high}).reset_index()


def log_costs(rows: pd.DataFrame) -> pd.Series:
    """Return log reducible loss less that alone, by task, size, seed and weight."""
    keys = ["task", "size", "seed", "weight"]
    logs = np.log(rows["reducible"]).groupby([rows[key] for key in keys]).mean().unstack("weight")
    costs: pd.Series = logs.drop(columns=1.0).sub(logs[1.0], axis=0).stack()
    return costs
