"""The tables that decisions rest on: the small models that are seen, and the target that judges."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pandas as pd

from mnmt_laws import Observations, observe
from studies.analysis.decisions.wants import WISHES, Wish
from studies.analysis.real_text.pairs import SHORTEST
from studies.page import PAGES

BEFOREHAND = PAGES / "decisions/beforehand.toml"
ALL, CHEAP = "all smaller models", "a tenth of a target each"
TENTH = 0.1
"""The greatest cost of a cheap run, in trainings of the target."""

KNOWN = {
    "en-de-zh": "real-text/en-de-zh.csv",
    "en-de-fr": "real-text/en-de-fr.csv",
    "de-zh-en": "real-text/de-zh-en.csv",
    "made languages": "splitting/unrelated.csv",
}
"""Tables that were known when the methods were made."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Models of two tasks."""

    name: str
    path: Path
    wishes: Sequence[Wish] = WISHES
    choices: Mapping[str, Mapping[str, Sequence[float]]]
    """The sets of small models: of each width and length, such as `d12_200`, the weights of the first task;
    without any, all that are smaller."""
    target: Mapping[str, float] | None = None
    """`size` and `steps` of the target; by default the largest model of the table."""
    targets: Path | None = None
    """The table of the targets, which were not trained yet when methods chose; by default the same."""

    @cached_property
    def observations(self) -> Observations:
        """The losses in domain, of which no method knows the entropy."""
        return _read(self.path)

    @property
    def tasks(self) -> list[str]:
        """Both tasks, in order."""
        return sorted(self.observations.frame["task"].unique())

    @property
    def seeds(self) -> list[int]:
        """Those of the small models: one practitioner each."""
        return sorted(self.observations.frame["seed"].dropna().astype(int).unique().tolist())

    @property
    def size(self) -> float:
        """N of the target, parameters."""
        return float(self.target["size"] if self.target else self.observations.frame["size"].max())

    @property
    def judges(self) -> pd.DataFrame:
        """Rows of the target, at its longest training."""
        rows = (_read(self.targets) if self.targets else self.observations).frame
        rows = rows[rows["size"].eq(self.size) & rows["weight"].gt(0)]
        return rows[rows["step"].eq(rows["step"].max())]

    @property
    def steps(self) -> float:
        """Length of the target's training."""
        return float(self.target["steps"] if self.target else self.judges["step"].max())

    @property
    def tokens(self) -> float:
        """D of the target."""
        rows = self.observations.frame
        return self.steps * float((rows["tokens"] / rows["step"]).median())

    @property
    def unit(self) -> float:
        """FLOPs of training the target once."""
        return float(self.judges["flops"].median())

    def small(self, kind: str, seed: int) -> Observations:
        """Return the models of one seed that methods see."""
        rows = self.observations.frame
        rows = rows[rows["size"].lt(self.size) & rows["seed"].eq(seed) & rows["step"].le(self.steps)]
        if kind == CHEAP:
            costs = rows.groupby(["size", "step"])["flops"].transform("median")
            rows = rows[costs.le(TENTH * self.unit)]
        if runs := self.choices[kind]:
            models = rows["run"].str.partition("_")[0] + rows["step"].map("_{:g}".format)
            first = zip(models, self.first_weights(rows), strict=True)
            rows = rows[[weight in runs.get(model, ()) for model, weight in first]]
        return replace(self.observations, frame=rows.assign(role="fit").reset_index(drop=True))

    def first_weights(self, rows: pd.DataFrame) -> pd.Series:
        """Return the first task's weight in the mixture of each row."""
        return rows["weight"].where(rows["task"].eq(self.tasks[0]), 1 - rows["weight"]).round(6)


def _read(path: Path) -> Observations:
    table = observe(path, testset="test", metric="loss")
    rows = table.frame[table.frame["step"].ge(SHORTEST)]
    return replace(table, frame=rows.assign(irreducible=float("nan")).reset_index(drop=True))


def known_tables() -> Iterator[Table]:
    """Yield the tables that were known when the methods were made."""
    for name, path in KNOWN.items():
        yield Table(name=name, path=PAGES / path, choices={ALL: {}, CHEAP: {}})


def new_tables() -> Iterator[Table]:
    """Yield the tables whose targets were trained after everything was fixed."""
    plan = tomllib.loads(BEFOREHAND.read_text(encoding="utf-8"))
    wishes = [Wish(name=name, **_tuples(keys)) for name, keys in plan["wants"].items()]
    for name in plan["tables"]:
        yield Table(
            name=f"{name}, d96", path=PAGES / f"real-text/{name}.csv", wishes=wishes,
            choices=plan["small"], target=plan["target"], targets=BEFOREHAND.parent / f"{name}.csv",
        )  # fmt: skip


def _tuples(keys: Mapping[str, object]) -> dict[str, object]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in keys.items()}


def cost_of(rows: pd.DataFrame) -> float:
    """Return the FLOPs of training some models to some lengths, the steps that lengths share counted once.

    All lengths of one model leave one trunk, each for a cool-down of its own.
    """
    runs = rows.drop_duplicates(["size", "mixture", "seed", "step"])
    trunk = (runs["cooldown_start"] / runs["step"]).fillna(0.0) * runs["flops"]
    longest = trunk.groupby([runs["size"], runs["mixture"], runs["seed"]]).max()
    return float((runs["flops"] - trunk).sum() + longest.sum())
