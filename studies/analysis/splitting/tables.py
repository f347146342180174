"""The run tables of the study, and fits of laws to the losses above the entropy."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from mnmt_laws import ClusterBootstrap, LawFit, ResidualBootstrap, fit
from mnmt_laws.arrays import Array
from mnmt_laws.laws import LawName
from studies.page import PAGES

FOLDER = PAGES / "splitting"
SHARED: Mapping[str, float] = {"unrelated": 0.0, "shared-25": 0.25, "shared-50": 0.5, "shared-100": 1.0}
"""The share of the teacher's features that both languages of a table have in common."""

NAMES = (*SHARED, "many-to-one", "lexicon")
"""The tables whose effective fractions are taken; one that is not there is passed over."""

SATURATED = {"step": 2000, "weight": 0.3}
"""The briefest training and smallest weight at which no loss is near what a model without context has."""

KNOWN = 1e-9
"""The irreducible part of a reducible loss, in nats per token; a run table must have one above 0."""

Method = type[ClusterBootstrap] | type[ResidualBootstrap]
RUNS, RESIDUALS = ClusterBootstrap, ResidualBootstrap
"""Intervals over runs, and so over seeds, and over a fit's residuals."""


def tables() -> dict[str, pd.DataFrame]:
    """Return the tables that are there, by name."""
    return {name: read(name) for name in NAMES if (FOLDER / f"{name}.csv").exists()}


def read(name: str, testset: str = "test") -> pd.DataFrame:
    """Return the losses of trained tasks at the ends of runs, with `reducible` = L - irreducible."""
    rows = pd.read_csv(FOLDER / f"{name}.csv")
    last = rows["annealed"].eq(1) & rows["weight"].gt(0) & rows["testset"].eq(testset)
    rows = rows[last & rows["metric"].eq("loss")].reset_index(drop=True)
    return rows.assign(reducible=rows["value"] - rows["irreducible"])


def saturated(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of at least the length and weight of `SATURATED`."""
    return rows[rows["step"].ge(SATURATED["step"]) & rows["weight"].ge(SATURATED["weight"])]


def few(rows: pd.DataFrame) -> pd.DataFrame:
    """Return two seeds' runs of three weights a task and two lengths, to see that an analysis works."""
    some = saturated(rows)
    return some[some["weight"].isin([0.3, 0.5, 0.7, 1.0]) & some["seed"].le(2)]


def above_entropy(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows whose value is the reducible loss, so that errors are of its logarithm."""
    return rows.assign(value=rows["reducible"], irreducible=KNOWN).reset_index(drop=True)


def fit_reducible(rows: pd.DataFrame, law: LawName, *, refits: int = 0, over: Method = RUNS) -> LawFit:
    """Fit a law to reducible losses, L∞ known."""
    return fit(above_entropy(rows), law=law, irreducible="known", uncertainty=over(refits=refits))


def fit_losses(rows: pd.DataFrame, law: LawName, *, refits: int = 0, over: Method = RUNS) -> LawFit:
    """Fit a law to losses, L∞ unknown."""
    return fit(rows.reset_index(drop=True), law=law, irreducible="ignore", uncertainty=over(refits=refits))


def relative_errors(predicted: Array, rows: pd.DataFrame) -> Array:
    """Return (n,) how far predicted losses are from the measured ones, as shares of the reducible loss."""
    return np.asarray((predicted - rows["value"].to_numpy()) / rows["reducible"].to_numpy())


def rms(errors: Array) -> float:
    """Return the root of the mean square."""
    return float(np.sqrt(np.mean(np.square(errors))))
