"""The model that a forecast is for, and the rows of a table that are of its training length."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mnmt_laws.arrays import Array
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.tables.lengths import CELL
from mnmt_laws.tables.observations import Observations

TIMES = 2.0
"""Times the largest size fitted: the size of advice where none is given."""

NEAR = 1.2
"""Ratio up to which two lengths count as one: equal steps on other mixtures differ in their tokens."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """A size and a training length; None where they are open, or the table has none."""

    size: float | None = None
    """N, parameters."""

    tokens: float | None = None
    """D, tokens of all tasks."""

    def given_to(self, fit: LawFit) -> dict[str, float]:
        """Return the numbers from which a law predicts."""
        known = {"size": self.size, "tokens": self.tokens}
        return {name: x for name, x in known.items() if x is not None and name in fit.law.predictors}


def usual_target(observations: Observations) -> Target:
    """Return the model that advice is for by default.

    Where sizes vary, it has twice the largest size fitted, or the largest held out if that is larger; where
    lengths vary, the longest training.
    """
    rows = observations.rows_to_fit(zero_shot=True)
    sizes, lengths = rows["size"].dropna(), rows["tokens"].dropna()
    measured = observations.held_out["size"].max()  # NaN if none is
    size = float(np.fmax(TIMES * sizes.max(), measured)) if sizes.nunique() > 1 else None
    varies = observations.lengths.within and len(lengths) > 0
    return Target(size=size, tokens=float(lengths.max()) if varies else None)


def at_length(observations: Observations, tokens: float) -> Observations | None:
    """Return the observations of one training length: of each model, its row nearest to it.

    None where no row lies within a factor of `NEAR`.
    """
    frame = observations.frame
    distance = np.abs(np.log(frame["tokens"] / tokens))
    near = frame.assign(distance=distance)[distance <= np.log(NEAR)]
    if near.empty:
        return None
    nearest = near.groupby([*CELL, "seed", "run"], dropna=False)["distance"].idxmin()
    rows = frame.loc[np.sort(nearest.to_numpy())].reset_index(drop=True)
    return replace(observations, frame=rows)


def is_near(lengths: Array, tokens: float | None) -> Array:
    """Return (n,) whether lengths are about the target's; all are where it has none."""
    if tokens is None:
        return np.ones(len(lengths), dtype=bool)
    return np.asarray(np.abs(np.log(lengths / tokens)) <= np.log(NEAR))
