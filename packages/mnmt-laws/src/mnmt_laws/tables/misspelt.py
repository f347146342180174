"""Names of tasks that look misspelt: one model's only, and nearly that of a task which it lacks."""

from __future__ import annotations

import pandas as pd

from mnmt_laws.tables.columns import closest
from mnmt_laws.tables.row_location import RowLocator

_MODEL = ["run", "architecture", "size", "seed", "mixture"]
_CLOSE, _MANY = 0.8, 4  # likeness of two names, and models that name what is meant


def misspelt(table: pd.DataFrame) -> tuple[str, ...]:
    """Return a line for each task or source of one model that has nearly the name of one of many models.

    A model that has both names, as tasks or in its mixture, tells them apart.

    Args:
        table: Rows of a run table.
    """
    named = _names(table)
    counts = named.groupby("name")["model"].nunique()
    lines = {}
    for name in counts.index[counts == 1]:
        rows = named[named["name"] == name]
        of_model = named[named["model"] == rows["model"].iloc[0]]
        together = of_model[of_model["kind"].isin(rows["kind"])]["name"]
        lines[name] = closest(name, counts.index[counts >= _MANY].difference(together), cutoff=_CLOSE)
    return tuple(
        f"{_rows(table, named, name)}: `{name}` is named by no other model; is `{meant}` meant?"
        for name, meant in lines.items()
        if meant
    )


def _names(table: pd.DataFrame) -> pd.DataFrame:
    """Return `name`, `kind` (task or mixture), `model` and `place` of each name in each row."""
    table = table.assign(
        model=table.groupby(_MODEL, dropna=False).ngroup().to_numpy(), place=range(len(table)),
        source=table["mixture"].str.split(","),
    )  # fmt: skip
    sources = table.explode("source").assign(kind="mixture")
    sources["name"] = sources["source"].str.rpartition(":")[0].str.strip()
    tasks = table.assign(kind="task", name=table["task"])
    named = pd.concat([tasks, sources[sources["name"] != ""]])
    return named[["name", "kind", "model", "place"]]


def _rows(table: pd.DataFrame, named: pd.DataFrame, name: str) -> str:
    places = sorted(set(named.loc[named["name"] == name, "place"]))
    return RowLocator(source="").name(table, *places).strip()
