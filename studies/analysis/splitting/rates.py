"""The learning rate as a rival: the best rate of each model, and what exponents are there."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures
from studies.analysis.rates import CELL, at_best_rates
from studies.analysis.splitting.tables import read

BY_RATE = "rates-8000"
"""The table of several rates, of some sizes and weights of the main study."""
USUAL_RATE = 0.05
"""The rate of the tables whose runs' names tell none."""


def tables() -> dict[str, pd.DataFrame]:
    """Return the losses that are compared: at the best rates, and at eight weights and one rate."""
    return {"best rates": at_best_rates(read(BY_RATE), "reducible"), "one rate": read("unrelated")}


def rates() -> Iterator[Figures]:
    """Yield each model's best rate, and the factor by which the usual rate's loss is above the least.

    The best rate is `at the edge` if it is the least or the largest tried: a better one may lie beyond.
    """
    for key, cell in read(BY_RATE).groupby(CELL):
        means = np.exp(cell.groupby("rate")["log"].mean())
        yield {
            **dict(zip(CELL, key, strict=True)),
            "by rate": {f"{rate:g}": float(value) for rate, value in means.items()},
            "best rate": float(means.idxmin()), "lost": float(means[USUAL_RATE] / means.min()),
            "at the edge": means.idxmin() in (means.index.min(), means.index.max()),
        }  # fmt: skip
