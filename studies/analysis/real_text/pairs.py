"""The tables of three pairs of tasks, and the cost of a related second language."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from benchmarks.measurement import Figures
from mnmt_laws import Observations, observe
from studies.page import PAGES

FOLDER = PAGES / "real-text"

TITLES = {
    "en-de-fr": "English to German and French",
    "en-de-zh": "English to German and Chinese",
    "de-zh-en": "German and Chinese to English",
}
"""What each table holds."""

TESTSETS = {"test": "in domain", "debian": "out of domain"}

GRID = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
"""Weights of the first task at every size."""

UNSEEN = 0.4
"""Its weight in the models that test the prediction of a weight."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The runs of two tasks that share models."""

    name: str

    rows: pd.DataFrame
    """A run table."""

    @property
    def title(self) -> str:
        """The tasks in words."""
        return TITLES[self.name]

    @property
    def tasks(self) -> list[str]:
        """Both tasks, in the order of the table's name."""
        return sorted(self.rows["task"].unique())

    @property
    def steps(self) -> list[int]:
        """Training lengths, ascending."""
        final = self.rows[self.rows["testset"].eq("test") & self.rows["metric"].eq("loss")]
        return sorted(int(step) for step in final["step"].unique())

    @property
    def largest(self) -> float:
        """The greatest number of parameters."""
        return float(self.rows["size"].max())

    @property
    def seeds(self) -> list[int]:
        """The seeds of its runs, ascending."""
        return sorted(int(seed) for seed in self.rows["seed"].unique())

    def of(self, *seeds: int) -> Pair:
        """Return the runs of some seeds."""
        return Pair(name=self.name, rows=self.rows[self.rows["seed"].isin(seeds)])

    def at(self, *weights: float) -> Pair:
        """Return the runs in which the first task has one of some weights."""
        return Pair(name=self.name, rows=self.rows[self.first_weights(self.rows).isin(weights)])

    def first_weights(self, rows: pd.DataFrame) -> pd.Series:
        """Return the weight of the first task in the model of each row, of either task."""
        return rows["weight"].where(rows["task"].eq(self.tasks[0]), 1 - rows["weight"]).round(4)

    def observations(
        self, *, testset: str = "test", step: int | None = None, metric: str = "loss", fit_all: bool = False
    ) -> Observations:
        """Return what the runs of one length, or of all lengths, reached.

        Args:
            testset: `test` or `debian`.
            step: The training length; by default all.
            metric: `loss`, `chrf` or `bleu`.
            fit_all: Whether runs that were held out are fitted, too.
        """
        rows = self.rows if step is None else self.rows[self.rows["step"].eq(step)]
        rows = rows[rows["metric"].eq(metric)]
        return observe(rows.assign(role="fit") if fit_all else rows, metric=metric, testset=testset)

    def all_but(self, step: int, *, testset: str = "test") -> Observations:
        """Return all runs, those of one length held out."""
        losses = self.rows[self.rows["metric"].eq("loss")]
        return observe(losses.assign(role=losses["role"].mask(losses["step"].eq(step), "held-out")),
                       testset=testset)  # fmt: skip


def read_pairs(folder: Path = FOLDER, *, names: Iterable[str] = TITLES) -> list[Pair]:
    """Return the pairs whose tables exist."""
    files = {name: folder / f"{name}.csv" for name in names}
    return [Pair(name=name, rows=pd.read_csv(file)) for name, file in files.items() if file.is_file()]


TABLES = {
    "en-de-zh": "beside Chinese",
    "en-de-fr": "beside French",
    "en-de-fr-4000": "beside French, 4,000 ids",
}
"""Tables with German and another target. The ids of the first two are 4,000 and 2,000."""

TASK = "en-de"


def costs_of_sharing(folder: Path = FOLDER) -> Iterator[Figures]:
    """Yield what each weight costs German at the longest training, against models of German alone.

    `cost` is in nats a token, the mean over seeds, against the model alone of the same seed. `relative` is
    the cost over the loss alone: all tables have the same German test sentences, so it does not depend on
    how a vocabulary cuts them.
    """
    for pair in read_pairs(folder, names=TABLES):
        for testset in TESTSETS:
            yield from _costs(pair, testset)


def _costs(pair: Pair, testset: str) -> Iterator[Figures]:
    rows = pair.observations(testset=testset, step=pair.steps[-1], fit_all=True).frame
    losses = rows[rows["task"].eq(TASK)].pivot_table(index=["size", "seed"], columns="weight", values="value")
    weights = losses.columns.to_numpy(float)
    for size, of_size in losses.groupby("size"):
        for weight in weights[(weights > 0) & (weights < 1)].tolist():
            costs = (of_size[weight] - of_size[1.0]).dropna()
            relative = (of_size[weight] / of_size[1.0] - 1).dropna()
            if len(costs):
                yield {
                    "table": TABLES[pair.name], "testset": testset, "size": size, "weight": weight,
                    "cost": costs.mean(), "relative": relative.mean(), "by seed": relative.tolist(),
                }  # fmt: skip
