"""Two rivals of what the pairs show: a mixed model has more updates, and one learning rate may fit few."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures
from mnmt_laws import exponents_by_exposure, observe
from studies.analysis.rates import CELL, at_best_rates, rates_of
from studies.analysis.real_text.exposure import BATCH, bends, every_length, mean_transfer, transfer_by_size
from studies.analysis.real_text.pairs import TESTSETS, read_pair

TUNED = {"en-de-zh": "rates", "de-zh-en": "tuned-de-zh-en"}
"""The table of each pair at the best rate; `updates-*.csv` have each task alone in half the batch."""

RATE = 0.1
"""The best learning rate, of tables whose runs' names tell none."""

HALF = 0.5
"""The weight at which a task alone in half the batch reads as much in as many updates."""


def read_rates(folder: Path, name: str, testset: str) -> pd.DataFrame:
    """Return the losses of a table of all lengths and p > 0, with the `rate` that the runs' names tell."""
    rows = every_length(read_pair(folder / f"{name}.csv", name), testset)
    return rows.assign(rate=rates_of(rows["run"]).fillna(RATE))[rows["weight"].gt(0)]


def describe_updates(folder: Path) -> Iterator[Figures]:
    """Yield the gain at best rates over the task alone, read as often in fewer updates or in as many.

    As many are of half the batch: at each learning rate, and at the better one of each size by its mean.
    """
    for name in TUNED:
        for testset in TESTSETS:
            rows, small = _together(folder, name, testset)
            tables = {f"as many updates, rate {rate:g}": part for rate, part in small.groupby("rate")}
            tables |= {"as many updates, best rate": at_best_rates(small)}
            for words, alone in {"half as many updates": rows[rows["weight"].eq(1)], **tables}.items():
                for row in mean_transfer(pd.concat([rows[rows["weight"].eq(HALF)], alone])):
                    yield {"pair": name, "testset": testset, "alone": words, **row}


def _together(folder: Path, name: str, testset: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the losses of a pair at the best rates, and of its tasks alone in half the batch at any."""
    rows = at_best_rates(read_rates(folder, TUNED[name], testset))
    small = read_rates(folder, f"updates-{name}", testset)
    return rows, small.assign(tokens=BATCH // 2 * small["step"])


def updates_by_size(folder: Path) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the name of each pair and its gains in domain at equal updates and best rates."""
    for name in TUNED:
        rows, small = _together(folder, name, "test")
        yield name, transfer_by_size(pd.concat([rows[rows["weight"].eq(HALF)], at_best_rates(small)]))


def costs_of_rate(folder: Path) -> Iterator[Figures]:
    """Yield what each rate costs above the best one of each size, in nats, in domain."""
    rows = read_rates(folder, "rates", "test")
    means = rows.pivot_table(index=CELL, columns="rate", values="value")
    costs = means.sub(means.min(axis=1), axis=0)
    for (task, weight, step), part in costs.groupby(["task", "weight", "step"]):
        yield {
            "task": task, "weight": weight, "step": step,
            "size": part.index.get_level_values("size").tolist(),
            "least": means.min(axis=1).loc[part.index].tolist(),
            "cost": {f"{rate:g}": values.tolist() for rate, values in part.items()},
        }  # fmt: skip


def transfer_at_rates(folder: Path) -> Iterator[Figures]:
    """Yield the gain over the task alone, read as often, at each rate and at the best ones, in domain."""
    rows = read_rates(folder, "rates", "test")
    tables = {f"{rate:g}": part for rate, part in rows.groupby("rate")} | {"best": at_best_rates(rows)}
    for words, part in tables.items():
        for row in mean_transfer(part):
            yield {"rate": words, **row}


def exponents_at_rates(folder: Path) -> Iterator[Figures]:
    """Yield α of each curve at the best rates, what it follows, and how log loss bends, in domain."""
    table = read_pair(folder / "rates.csv", "rates")
    rows = at_best_rates(read_rates(folder, "rates", "test"))
    rows = rows[rows["step"].isin(table.lengths)]
    fits = exponents_by_exposure(observe(rows.assign(role="fit")), limits="zero")
    longest = rows[rows["step"].eq(table.lengths[-1])]
    for test in fits.tests[:-1]:
        curves = fits.curves[fits.curves["task"].eq(test.task)]
        by_size = longest[longest["task"].eq(test.task)].groupby("weight")[["size", "value"]]
        yield {
            "task": test.task, "p": curves["weight"].tolist(), "steps": (curves["length"] / BATCH).tolist(),
            "α": curves["alpha"].tolist(), "std": curves["alpha_std"].tolist(), "R²": test.r_squared,
            **bends([np.log(curve.to_numpy(float)).T for _, curve in by_size]),
        }  # fmt: skip
