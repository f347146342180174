"""Two rivals of what the pairs show: a mixed model has more updates, and one learning rate may fit few."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from benchmarks.measurement import Figures
from studies.analysis.rates import CELL, at_best_rates, rates_of
from studies.analysis.real_text.exposure import BATCH, every_length, mean_transfer, transfer_by_size
from studies.analysis.real_text.pairs import TESTSETS, read_pair

UPDATES = ("en-de-zh", "de-zh-en")
"""Pairs whose tasks were trained alone in half batches too, in `updates-*.csv`."""

HALF = 0.5
"""The weight at which a task alone in half the batch reads as much in as many updates."""


def read_rates(folder: Path, name: str, testset: str) -> pd.DataFrame:
    """Return the losses of a table of all lengths and p > 0, with the `rate` that the runs' names tell."""
    rows = every_length(read_pair(folder / f"{name}.csv", name), testset)
    return rows.assign(rate=rates_of(rows["run"]))[rows["weight"].gt(0)]


def describe_updates(folder: Path) -> Iterator[Figures]:
    """Yield the gain over the task alone, read as often in as many updates of half the batch.

    Alone it is at each learning rate, and at the best one of each size by its mean over seeds.
    """
    for name in UPDATES:
        for testset in TESTSETS:
            together, small = _together(folder, name, testset)
            tables = {f"rate {rate:g}": part for rate, part in small.groupby("rate")}
            for words, alone in {**tables, "best rate": at_best_rates(small)}.items():
                for row in mean_transfer(pd.concat([together, alone])):
                    yield {"pair": name, "testset": testset, "alone": words, **row}


def _together(folder: Path, name: str, testset: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the losses of a pair at equal weights, and of its tasks alone in half the batch at any rate."""
    rows = every_length(read_pair(folder / f"{name}.csv", name), testset)
    small = read_rates(folder, f"updates-{name}", testset)
    return rows[rows["weight"].eq(HALF)], small.assign(tokens=BATCH // 2 * small["step"])


def updates_by_size(folder: Path) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the name of each pair and its gains in domain at equal updates."""
    for name in UPDATES:
        together, small = _together(folder, name, "test")
        yield name, transfer_by_size(pd.concat([together, at_best_rates(small)]))


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
