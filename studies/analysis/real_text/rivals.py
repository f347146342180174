"""A rival of what the pairs show: one learning rate may fit few models.

The runs of these tables have their learning rate in their names (`d12-rate-02`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures
from mnmt_laws import exponents_by_exposure, observe
from studies.analysis.real_text.exposure import BATCH, bends, every_length, mean_transfer
from studies.analysis.real_text.pairs import TESTSETS, Pair, read_pair

RATED = "en-de-zh"
"""The pair that these tables are of."""

CELL = ["task", "weight", "size", "step"]
"""What runs of several rates share."""


def read_rates(folder: Path, name: str, testset: str) -> pd.DataFrame:
    """Return the losses of a table whose runs' names tell their `rate`, of all lengths and p > 0."""
    rows = every_length(read_pair(folder / f"{name}.csv", name), testset)
    digits = rows["run"].str.extract(r"-rate-(?P<rate>\d+)_")["rate"]
    return rows.assign(rate=("0." + digits).astype(float))[rows["weight"].gt(0)]


def at_best_rates(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of each model and length at the rate of its least mean loss."""
    best = rows.groupby([*CELL, "rate"])["value"].mean().groupby(level=CELL).idxmin()
    return rows[pd.MultiIndex.from_frame(rows[[*CELL, "rate"]]).isin(best)]


def costs_of_rate(pair: Pair, folder: Path) -> Iterator[Figures]:
    """Yield what each rate costs in nats above the best one at each size, by task, weight and length."""
    for testset in TESTSETS:
        rows = read_rates(folder, "rates", testset)
        means = rows.pivot_table(index=CELL, columns="rate", values="value")
        costs = means.sub(means.min(axis=1), axis=0)
        for (task, weight, step), part in costs.groupby(["task", "weight", "step"]):
            yield {
                "pair": pair.name, "testset": testset, "task": task, "weight": weight, "step": step,
                "size": part.index.get_level_values("size").tolist(),
                "least": means.min(axis=1).loc[part.index].tolist(),
                "cost": {f"{rate:g}": values.tolist() for rate, values in part.items()},
            }  # fmt: skip


def transfer_at_rates(pair: Pair, folder: Path) -> Iterator[Figures]:
    """Yield the gain over the task alone, read as often, at each rate and at the best ones."""
    for testset in TESTSETS:
        rows = read_rates(folder, "rates", testset)
        tables = {f"{rate:g}": part for rate, part in rows.groupby("rate")} | {"best": at_best_rates(rows)}
        for words, part in tables.items():
            for row in mean_transfer(part):
                yield {"pair": pair.name, "testset": testset, "rate": words, **row}


def exponents_at_rates(pair: Pair, folder: Path) -> Iterator[Figures]:
    """Yield α of each curve at the best rates, what it follows, and how log loss bends."""
    for testset in TESTSETS:
        rows = at_best_rates(read_rates(folder, "rates", testset))
        rows = rows[rows["step"].isin(pair.lengths)]
        fits = exponents_by_exposure(observe(rows.assign(role="fit")), limits="zero")
        longest = rows[rows["step"].eq(pair.lengths[-1])].groupby(["task", "weight"])
        bend = bends([np.log(curve[["size", "value"]].to_numpy(float)).T for _, curve in longest])
        for test in fits.tests:
            curves = fits.curves[fits.curves["task"].eq(test.task)]
            yield {
                "pair": pair.name, "testset": testset, "task": test.task,
                "p": curves["weight"].tolist(), "steps": (curves["length"] / BATCH).tolist(),
                "α": curves["alpha"].tolist(), "std": curves["alpha_std"].tolist(), "R²": test.r_squared,
                "log p at equal exposure": list(test.at_equal_exposure),
                "log exposure at equal p": list(test.per_exposure), "bends": bend,
            }  # fmt: skip
