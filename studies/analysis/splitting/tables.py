"""The run tables of the study, and fits of laws to the losses above the entropy."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures
from mnmt_laws import ClusterBootstrap, LawFit, fit
from mnmt_laws.laws import LawName
from studies.analysis.intervals import pooled
from studies.analysis.rates import CELL, rates_of
from studies.page import PAGES

FOLDER = PAGES / "splitting"
MORE = {"unrelated": ("unrelated-8000",)}
"""Tables that belong to another: of longer training, for example."""

KNOWN = 1e-9
"""The irreducible part of a reducible loss, in nats per token; a run table must have one above 0."""


def read(name: str) -> pd.DataFrame:
    """Return annealed test losses of trained tasks, with `reducible` = L - irreducible, its `log`, `rate`."""
    rows = pd.concat([pd.read_csv(FOLDER / f"{each}.csv") for each in (name, *MORE.get(name, ()))])
    rows["run"] = rows["study"] + "/" + rows["run"]  # two studies may have a name in common
    last = rows["annealed"].eq(1) & rows["weight"].gt(0) & rows["testset"].eq("test")
    rows = rows[last & rows["metric"].eq("loss")].reset_index(drop=True)
    reducible = rows["value"] - rows["irreducible"]
    return rows.assign(reducible=reducible, log=np.log(reducible), rate=rates_of(rows["run"]))


def fit_reducible(rows: pd.DataFrame, law: LawName, *, refits: int = 0) -> LawFit:
    """Fit a law to logarithms of reducible losses, L∞ known; refits are to runs drawn again."""
    rows = rows.assign(value=rows["reducible"], irreducible=KNOWN).reset_index(drop=True)
    return fit(rows, law=law, irreducible="known", uncertainty=ClusterBootstrap(refits=refits))


def rms(errors: object) -> float:
    """Return the root of the mean square."""
    return float(np.sqrt(np.mean(np.square(np.asarray(errors, float)))))


def seed_spreads(rows: pd.DataFrame) -> list[Figures]:
    """Return the standard deviation of log reducible loss over seeds, pooled over cells, at each length.

    The test set is exact, so it is all of training: initial weights and the order of the data.
    """
    parts = rows.groupby("step")
    return [{"step": step, "spread": pooled(part.groupby(CELL)["log"])[0] ** 0.5} for step, part in parts]
