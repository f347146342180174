"""Metrics the package knows: which way they go, and how far."""

from __future__ import annotations

import math

import pandas as pd

CEILINGS: dict[str, float | None] = {"bleu": 100, "chrf": 100, "chrf++": 100, "bleurt": None, "comet": None}
"""Metrics that rise with size, and the most they can reach in points, where that is known."""

KNOWN_METRICS = frozenset({"loss", *CEILINGS})


def is_rising(metric: str) -> bool:
    """Whether a metric rises with size to a ceiling; any other falls to a floor, as losses do."""
    return metric.casefold() in CEILINGS


def ceiling_of(metric: str, values: pd.Series) -> float:
    """The most a metric can reach, in the unit of `values`; infinite where nobody knows.

    Values of BLEU and chrF that are all at most 1 are taken for fractions.
    """
    points = CEILINGS.get(metric.casefold())
    if points is None:
        return math.inf
    return 1.0 if values.le(1).all() else float(points)
