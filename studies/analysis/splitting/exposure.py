"""How far the loss of a task that shares a model is above that of the task alone, read as often."""

from __future__ import annotations

import numpy as np
import pandas as pd

from studies.analysis.intervals import half_interval, pooled, ratios_of
from studies.analysis.rates import CELL
from studies.analysis.splitting.tables import read

LONG = "rates"
"""The table of the smallest size for 32,000 steps."""


def equal_exposure(rows: pd.DataFrame) -> pd.DataFrame:
    """Return by weight and length how many times the loss of a task alone, read as often, a shared task's is.

    A run at weight p and T steps is compared with runs at weight 1 and p T steps of the same size:
    reducible losses, those alone between their lengths on log axes. 1 would be exposure alone. Geometric
    means over sizes and seeds; Student's 95% intervals, the variance over seeds pooled over each length. The
    lengths of one run alone err alike.
    """
    pools = {step: pooled(part.groupby(CELL)["log"]) for step, part in rows.groupby("step")}
    rows = rows.assign(std=rows["step"].map({step: variance**0.5 for step, (variance, _) in pools.items()}))
    models = [model for _, model in rows.groupby(["task", "size", "seed"]) if model["weight"].eq(1).any()]
    groups = pd.concat(map(_gaps, models)).groupby(["task", "weight", "step"])
    variance = groups["variance"].mean() / groups["variance"].count()
    half = half_interval(variance, min(freedom for _, freedom in pools.values()))
    return ratios_of(groups["gap"].mean(), half)


def _gaps(model: pd.DataFrame) -> pd.DataFrame:
    """Return the shared tasks whose own steps lie between the lengths of those alone, with their `gap`."""
    alone, shared = model[model["weight"] == 1].sort_values("step"), model[model["weight"] < 1]
    steps = shared["weight"] * shared["step"]
    log, std = (np.interp(np.log(steps), np.log(alone["step"]), alone[name]) for name in ("log", "std"))
    is_between = steps.between(0.9999 * alone["step"].min(), alone["step"].max())
    return shared.assign(gap=shared["log"] - log, variance=shared["std"] ** 2 + std**2)[is_between]


def longer() -> pd.DataFrame:
    """Return `equal_exposure` of the smallest size at smaller rates, trained for up to 32,000 steps."""
    rows = read(LONG)
    return equal_exposure(rows.assign(task=rows["task"] + " at rate " + rows["rate"].astype(str)))
