"""The tables of three pairs of tasks, and which of their sizes, weights and lengths go together."""

from __future__ import annotations

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

LEAST = 200
"""Steps from which laws are fitted. In shorter trainings the rate rises for much of the time; they serve to
compare tasks that were read as often."""

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
        """Steps, from `LEAST` on, for which mixtures of every size were trained, ascending."""
        return [step for step, sizes in self._sizes_by_length.items()
                if step >= LEAST and sizes == len(self.sizes)]  # fmt: skip

    @cached_property
    def longer(self) -> list[int]:
        """Steps beyond these, for which mixtures of some sizes were trained."""
        return [step for step in self._sizes_by_length if step > self.lengths[-1]]

    @cached_property
    def _sizes_by_length(self) -> dict[int, int]:
        mixed = self.rows[self.rows["first"].between(0, 1, inclusive="neither")]
        return {int(step): part["size"].nunique() for step, part in mixed.groupby("step")}

    @cached_property
    def grid(self) -> list[float]:
        """Weights of the first task that every size has after the longest common training."""
        sizes = self.rows[self.rows["step"].eq(self.lengths[-1])].groupby("first")["size"].nunique()
        return [float(weight) for weight in sizes.index[sizes == len(self.sizes)]]

    def losses(self, *, testset: str = "test", metric: str = "loss") -> pd.DataFrame:
        """Return the rows of one metric on `test` or `debian`."""
        return self.rows[self.rows["metric"].eq(metric) & self.rows["testset"].eq(testset)]

    def observations(
        self, *, testset: str = "test", step: int | None = None, metric: str = "loss"
    ) -> Observations:
        """Return what the models of the grid's weights reached after one length, or after all common ones."""
        rows = self.losses(testset=testset, metric=metric)
        rows = rows[rows["first"].isin(self.grid) & rows["step"].isin([step] if step else self.lengths)]
        return observe(rows.assign(role="fit"), metric=metric, testset=testset)


def read_pairs(folder: Path = FOLDER) -> list[Pair]:
    """Return the pairs whose tables exist."""
    files = {name: folder / f"{name}.csv" for name in TITLES}
    return [read_pair(file, name) for name, file in files.items() if file.is_file()]


def read_pair(file: Path, name: str) -> Pair:
    """Return the pair of a table."""
    rows = pd.read_csv(file)
    is_first = rows["task"].eq(min(rows["task"]))
    return Pair(
        name=name, rows=rows.assign(first=rows["weight"].where(is_first, 1 - rows["weight"]).round(4))
    )
