"""Names of tasks that look misspelt: one model's or no mixture's, and nearly that of one lacking."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

import numpy as np
import pandas as pd

from mnmt_laws.errors import TableError
from mnmt_laws.tables.columns import LIKENESS, closest
from mnmt_laws.tables.mixture import parse_weights
from mnmt_laws.tables.row_location import RowLocator

_MODEL = ["architecture", "size", "mixture"]  # runs of other seeds share a slip
_RUN = [*_MODEL, "tokens", "step", "seed", "run"]
_MANY = 4  # models that name what is meant
_TRANSPOSED = 0.7  # likeness of `enrf` and `enfr`
_CODE = re.compile(r"(?<![A-Za-z])([A-Za-z]{2,3}|[A-Z][a-z]{3})(?![A-Za-z])")


def leave_misspelt_out(table: pd.DataFrame) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Leave out rows with a task or source of one model that has nearly the name of one of many models.

    One model cannot tell what a source is worth, so that little is lost where the name is no slip. No slip is
    the only source of a model, a name beside the one that may be meant, or one that differs from it only in
    language codes of equal length, or in digits.

    Args:
        table: Rows of a run table.

    Returns:
        The table, and a line for each such name.
    """
    told_apart = [name for name in _RUN if name in table]
    models = table.groupby(_MODEL, dropna=False).ngroup().to_numpy()
    runs = table.groupby(told_apart, dropna=False).ngroup().to_numpy()
    tasks = table.groupby(models)["task"].agg(set)
    sources = table["mixture"].groupby(models).first().map(_sources)
    models_of = defaultdict(list)
    for model in tasks.index:
        for name in tasks[model] | sources[model]:
            models_of[name].append(model)
    common = sorted(name for name, named in models_of.items() if len(named) >= _MANY)
    lines, role = [], table["role"]
    for name, (model, *others) in sorted(models_of.items()):
        if not others and (meant := _meant(name, sources[model], common)):
            of_task = (models == model) & table["task"].eq(name).to_numpy()
            if meant in {*table["task"][np.isin(runs, runs[of_task])]}:
                continue
            wrong = of_task | ((models == model) & (name in sources[model]))
            rows = RowLocator(source="").name(table, *np.flatnonzero(wrong)).strip()
            lines.append(f"{rows}: left out, for no other model names `{name}`; is `{meant}` meant?")
            role = role.mask(wrong, "left-out")
    return table.assign(role=role), tuple(lines)


def _meant(name: str, sources: set[str], common: list[str]) -> str | None:
    """Return the common name of which a name of a model with these sources may be a slip."""
    if sources == {name}:
        return None
    return _like(name, {*common} - (sources if name in sources else set()))


def _like(name: str, choices: set[str], *, cutoff: float = LIKENESS) -> str | None:
    """Return the choice of which a name may be a slip."""
    others = [other for other in sorted(choices) if _form(other) != _form(name)]
    return closest(name, others, cutoff=cutoff)


def refuse_misspelt_tasks(table: pd.DataFrame, columns: Mapping[str, str], source: str) -> None:
    """Refuse a task of no mixture that has nearly the name of a source without values.

    Args:
        table: Rows of a run table.
        columns: The column of each task, in a wide table.
        source: Name of the table.

    Raises:
        TableError: If there is one: all its rows would be read as zero-shot.
    """
    tasks, trained = {*table["task"]}, {*table.loc[table["weight"] > 0, "task"]}
    sources = set[str]().union(*map(_sources, table["mixture"].unique()))
    for task in sorted(tasks - trained - sources):
        if meant := _like(task, sources - tasks, cutoff=_TRANSPOSED):
            where = f" row 1: column `{columns[task]}`" if task in columns else ""
            raise TableError(
                f"{source}{where}: no mixture names task `{task}`, and source `{meant}` has no values; "
                "write both alike, or leave the task out."
            )


def _sources(mixture: str) -> set[str]:
    return set(parse_weights(mixture, "")) if mixture else set()


def _form(name: str) -> str:
    """Return a name with its numbers and the letters of language and script codes masked."""
    return _CODE.sub(lambda code: "?" * len(code[0]), re.sub(r"\d+", "0", name))
