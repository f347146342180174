"""Tables compared: shared features, one language as target or source, three tasks or two."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import xarray as xr

from benchmarks.measurement import Figures
from mnmt_laws import exponents_by_exposure, observe
from mnmt_laws.answers.exposure import ALL
from mnmt_laws.fitting.uncertainty import bounds_of
from studies.analysis.intervals import half_of_a_run, means_of, ratios_of
from studies.analysis.rates import CELL
from studies.analysis.splitting.tables import fit_reducible, read

INTO, OUT = "many-to-one", "lexicon"
FEATURES = ("shared-25", "shared-50", "shared-100")
"""Tables whose languages have 25, 50 and 100% of the teacher's features in common."""


def sharing(*, refits: int) -> Iterator[Figures]:
    """Yield how many times as large f of the first task is with shared features, at the sizes of all."""
    unrelated = read("unrelated")
    for name in FEATURES:
        rows = read(name)
        base = unrelated[unrelated["size"].isin(rows["size"])]
        for row in ratios(rows, base, task="xx-aa", refits=refits):
            yield {"table": name} | row


def predictors_of_exponents() -> Iterator[Figures]:
    """Yield the share of the variance of α that weight, length and exposure explain with shared features."""
    for name in FEATURES:
        exponents = exponents_by_exposure(observe(read(name).assign(role="fit")))
        yield from ({"table": name, **test.r_squared} for test in exponents.tests if test.task == ALL)


def direction(*, refits: int) -> Iterator[Figures]:
    """Yield how many times as large f is into one language as out of it."""
    out = read(OUT)
    for task in sorted(out["task"].unique()):
        yield from ratios(read_into(), out, task=task, refits=refits)


def ratios(rows: pd.DataFrame, base: pd.DataFrame, *, task: str, refits: int) -> Iterator[Figures]:
    """Yield the ratio of f in one table to that in another, at each length and weight below 1 of both.

    The tables' seeds are independent, so their draws are paired by lot. Intervals are of 95%.
    """
    for step, of_length in rows.groupby("step"):
        tables = of_length, base[base["step"].eq(step)]
        one, other = (fit_reducible(table, "joint", refits=refits) for table in tables)
        ratio = fraction(one.parameters, task) / fraction(other.parameters, task)
        draws = fraction(one.draws, task) / fraction(other.draws, task)
        low, high = bounds_of(draws.transpose("draw", "weight").to_numpy())
        table = pd.DataFrame({"weight": ratio["weight"], "ratio": ratio, "lower": low, "upper": high})
        yield from table[table["weight"] < 1].assign(step=step, task=task).to_dict("records")


def fraction(parameters: xr.Dataset, task: str) -> xr.DataArray:
    """Return f(p) = (β_1 / β_p)^(1/α) (eq. 10) of the joint law at the weights of a task."""
    law = parameters.sel(task=task)
    f: xr.DataArray = (law.beta.sel(weight=1.0, drop=True) / law.beta) ** (1 / law.alpha)
    return f.dropna("weight")


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
    logs = log_costs(read_into()) - log_costs(read(OUT))
    means = means_of(logs.groupby(level=["size", "weight"])).drop(columns="count")
    return np.exp(means).rename(columns={"mean": "ratio"}).reset_index()


def log_costs(rows: pd.DataFrame) -> pd.Series:
    """Return log reducible loss less that alone, by task, size, seed and weight."""
    keys = ["task", "size", "seed", "weight"]
    logs = rows.groupby(keys)["log"].mean().unstack("weight")
    costs: pd.Series = logs.drop(columns=1.0).sub(logs[1.0], axis=0).stack()
    return costs


def three_against_two() -> pd.DataFrame:
    """Return how many times the loss among two tasks that among three is, at equal weight of the task.

    Geometric means over sizes and seeds, with Student's 95% intervals, the variance over seeds pooled over
    both tables at each length. If f depends on a task's own weight alone, it is 1.
    """
    both = pd.concat([read(name).assign(table=name) for name in ("three", "unrelated")])
    both = both.groupby(CELL).filter(lambda cell: bool(cell["table"].nunique() == 2))
    parts = []
    for _, rows in both.groupby("step"):
        groups = rows.groupby(["task", "weight", "step", "table"])["log"]
        means, counts = groups.mean().unstack("table"), groups.count().unstack("table")
        half = half_of_a_run(rows.groupby(["table", *CELL])["log"]) * (1 / counts).sum(axis=1) ** 0.5
        parts.append(ratios_of(means["three"] - means["unrelated"], half))
    return pd.concat(parts)
