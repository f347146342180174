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
from studies.page import PAGES

BEFOREHAND = PAGES / "decisions/beforehand.toml"
ALL, CHEAP = "all smaller models", "a tenth of a target each"
TENTH = 0.1
"""The greatest cost of a cheap run, in trainings of the target."""

KNOWN = {
    "en-de-zh": ("real-text/en-de-zh.csv", (202_927, 181_880)),
    "en-de-fr": ("real-text/en-de-fr.csv", (200_818, 220_701)),
    "de-zh-en": ("real-text/de-zh-en.csv", (202_927, 181_880)),
    "made languages": ("splitting/unrelated.csv", (1, 1)),
}
"""Tables that were known when the methods were made, and the pairs of text of both tasks."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Models of two tasks."""

    name: str
    path: Path
    pairs: tuple[float, float]
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
            rows = rows[[weight in runs.get(model, ()) for model, weight in _models(rows, self.tasks[0])]]
        return replace(self.observations, frame=rows.assign(role="fit").reset_index(drop=True))


def _read(path: Path) -> Observations:
    table = observe(path, testset="test", metric="loss")
    return replace(table, frame=table.frame.assign(irreducible=float("nan")))


def _models(rows: pd.DataFrame, first: str) -> Iterator[tuple[str, float]]:
    """Yield the width and length of each row, such as `d12_200`, and the first task's weight."""
    for row in rows.itertuples():
        weight = row.weight if row.task == first else 1 - row.weight
        yield f"{row.run.partition('_')[0]}_{row.step:g}", round(weight, 6)


def known_tables() -> Iterator[Table]:
    """Yield the tables that were known when the methods were made."""
    for name, (path, pairs) in KNOWN.items():
        yield Table(name=name, path=PAGES / path, pairs=pairs, choices={ALL: {}, CHEAP: {}})


def new_tables() -> Iterator[Table]:
    """Yield the tables whose targets were trained after everything was fixed."""
    plan = tomllib.loads(BEFOREHAND.read_text(encoding="utf-8"))
    wishes = [Wish(name=name, **_tuples(keys)) for name, keys in plan["wants"].items()]
    for name in plan["tables"]:
        yield Table(
            name=f"{name}, d96", path=PAGES / f"real-text/{name}.csv", pairs=tuple(plan["pairs"]),
            wishes=wishes, choices=plan["small"],
            target=plan["target"], targets=BEFOREHAND.parent / f"{name}.csv",
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
