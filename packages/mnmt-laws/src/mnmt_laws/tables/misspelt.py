"""Names of tasks that look misspelt: one model's only, and nearly that of a task which it lacks."""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np
import pandas as pd

from mnmt_laws.tables.columns import LIKENESS, closest
from mnmt_laws.tables.mixture import parse_weights
from mnmt_laws.tables.row_location import RowLocator

_MODEL = ["architecture", "size", "mixture"]  # runs of other seeds share a slip
_MANY = 4  # models that name what is meant
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
    models = table.groupby(_MODEL, dropna=False).ngroup().to_numpy()
    tasks = table.groupby(models)["task"].agg(set)
    sources = table["mixture"].groupby(models).first().map(_sources)
    models_of = defaultdict(list)
    for model in tasks.index:
        for name in tasks[model] | sources[model]:
            models_of[name].append(model)
    common = sorted(name for name, named in models_of.items() if len(named) >= _MANY)
    lines, role = [], table["role"]
    for name, (model, *others) in sorted(models_of.items()):
        if not others and (meant := _meant(name, tasks[model], sources[model], common)):
            wrong = (models == model) & (table["task"].eq(name).to_numpy() | (name in sources[model]))
            rows = RowLocator(source="").name(table, *np.flatnonzero(wrong)).strip()
            lines.append(f"{rows}: left out, for no other model names `{name}`; is `{meant}` meant?")
            role = role.mask(wrong, "left-out")
    return table.assign(role=role), tuple(lines)


def _meant(name: str, tasks: set[str], sources: set[str], common: list[str]) -> str | None:
    """Return the common name of which one of a model's tasks or sources may be a slip."""
    if sources == {name}:
        return None
    beside = {*(tasks if name in tasks else ()), *(sources if name in sources else ())}
    choices = [other for other in common if other not in beside and _form(other) != _form(name)]
    return closest(name, choices, cutoff=LIKENESS)


def _sources(mixture: str) -> set[str]:
    return set(parse_weights(mixture, "")) if mixture else set()


def _form(name: str) -> str:
    """Return a name with its numbers and the letters of language and script codes masked."""
    return _CODE.sub(lambda code: "?" * len(code[0]), re.sub(r"\d+", "0", name))
