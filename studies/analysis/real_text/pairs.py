"""The tables of three pairs of tasks, and which of their sizes, weights and lengths go together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from mnmt_laws import Observations, observe
from studies.page import PAGES

FOLDER = PAGES / "real-text"

TITLES = {
    "en-de-zh": "English to German and Chinese",
    "en-de-fr": "English to German and French",
    "de-zh-en": "German and Chinese to English",
}
"""What each table holds."""

TESTSETS = {"test": "in domain", "debian": "out of domain"}

SHORTEST = 200
"""Steps of the shortest training that laws are fitted to; shorter ones serve comparisons at equal reading."""

MODEL = ["task", "size", "mixture", "step"]
"""What seeds of a model share."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The runs of two tasks that share models, whatever a study held out of its own fits."""

    name: str

    rows: pd.DataFrame
    """A run table, with `first`: the weight of the first task in the model of each row."""

    @property
    def title(self) -> str:
        """The tasks in words."""
        return TITLES[self.name]

    @property
    def is_scored(self) -> bool:
        """Whether translations were scored, not losses alone."""
        return bool(self.rows["metric"].eq("chrf").any())

    @cached_property
    def tasks(self) -> list[str]:
        """Both tasks, in the order of the table's name."""
        return sorted(self.rows["task"].unique())

    @cached_property
    def sizes(self) -> list[float]:
        """Numbers of parameters, ascending."""
        return sorted(map(float, self.rows["size"].unique()))

    @cached_property
    def lengths(self) -> list[int]:
        """Steps from `SHORTEST` on that every size has, ascending."""
        return [step for step in self._steps(len(self.sizes)) if step >= SHORTEST]

    @cached_property
    def longer(self) -> list[int]:
        """Longer trainings of three sizes or more, ascending."""
        return [step for step in self._steps(3) if step > self.lengths[-1]]

    def _steps(self, sizes: int) -> list[int]:
        """Return the steps that at least so many sizes have, ascending."""
        counts = self.rows.groupby("step")["size"].nunique()
        return sorted(map(int, counts.index[counts >= sizes]))

    @cached_property
    def grid(self) -> list[float]:
        """Weights of the first task that every size has."""
        sizes = self.rows.groupby("first")["size"].nunique()
        return [float(weight) for weight in sizes.index[sizes == len(self.sizes)]]

    def losses(
        self, *, testset: str = "test", metric: str = "loss", lengths: Sequence[int] | None = None
    ) -> pd.DataFrame:
        """Return the rows of one metric on `test` or `debian`, by default of the `lengths` of every size."""
        rows = self.rows[self.rows["metric"].eq(metric) & self.rows["testset"].eq(testset)]
        return rows[rows["step"].isin(self.lengths if lengths is None else lengths)]

    def observations(
        self, *, testset: str = "test", step: int | None = None, metric: str = "loss"
    ) -> Observations:
        """Return what the models of the grid's weights reached after one length, or after all."""
        rows = self.losses(testset=testset, metric=metric, lengths=[step] if step else None)
        rows = rows[rows["first"].isin(self.grid)]
        return observe(rows.assign(role="fit"), metric=metric, testset=testset)


def read_pairs(folder: Path = FOLDER) -> list[Pair]:
    """Return all pairs."""
    return [read_pair(folder / f"{name}.csv", name) for name in TITLES]


def read_pair(file: Path, name: str) -> Pair:
    """Return the pair of a table."""
    rows = pd.read_csv(file)
    is_first = rows["task"].eq(min(rows["task"]))
    return Pair(
        name=name, rows=rows.assign(first=rows["weight"].where(is_first, 1 - rows["weight"]).round(4))
    )
