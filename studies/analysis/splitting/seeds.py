"""How much a reducible loss differs from seed to seed, and what that does to f(p)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from mnmt_laws.fitting.uncertainty import bounds_of
from studies.analysis.splitting.fractions import fraction
from studies.analysis.splitting.tables import RESIDUALS, fit_reducible

GROUPS = {"p ≤ .1": (0.0, 0.1), "p .3 to .7": (0.3, 0.7), "p ≥ .9": (0.9, 1.0)}
CELL = ["task", "size", "weight", "step"]


def spreads(rows: pd.DataFrame) -> Iterator[dict[str, object]]:
    """Yield the standard deviation of log reducible loss over seeds, pooled over cells, in each part.

    The test set is exact, so it is all of training: initial weights and the order of the data.
    """
    for step, some in rows.groupby("step"):
        for label, (low, high) in GROUPS.items():
            cells = np.log(some[some["weight"].between(low, high)]["reducible"]).groupby(
                [some[name] for name in CELL]
            )
            each = cells.std()
            yield {
                "step": step, "weights": label, "cells": len(each), "spread": pooled_spread(some, low, high),
                "lowest": float(each.min()), "highest": float(each.max()),
            }  # fmt: skip


def pooled_spread(rows: pd.DataFrame, low: float = 0.0, high: float = 1.0) -> float:
    """Return the root mean square, over cells, of the standard deviation of log reducible loss."""
    some = rows[rows["weight"].between(low, high)]
    variances = np.log(some["reducible"]).groupby([some[name] for name in CELL]).var()
    return float(np.sqrt(variances.mean()))


def fractions_by_seed(rows: pd.DataFrame, *, refits: int, weight: float = 0.5) -> Iterator[dict[str, object]]:
    """Yield f at a weight from each seed alone, beside the interval from all.

    The interval of one seed is from its residuals (the bootstrap that `fit` takes by default), that of all
    is over runs.
    """
    for step, some in rows.groupby("step"):
        together = fit_reducible(some, "joint", refits=refits)
        alone = [
            fit_reducible(part, "joint", refits=refits, over=RESIDUALS) for _, part in some.groupby("seed")
        ]
        for task in together.tasks:
            value, draws = fraction(together, task, weight)
            seeds = [fraction(each, task, weight) for each in alone]
            yield {
                "step": step, "task": task, "weight": weight, "value": value,
                "interval": ends(draws), "by seed": [one for one, _ in seeds],
                "intervals by seed": [ends(each) for _, each in seeds],
            }  # fmt: skip


def ends(draws: np.ndarray) -> list[float]:
    """Return the ends of the 95% interval."""
    return [float(end) for end in bounds_of(draws)]
