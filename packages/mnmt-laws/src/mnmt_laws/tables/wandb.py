"""Panels that Weights & Biases exports: a column `RUN - METRIC` of each run, its `__MIN` and `__MAX`."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pandas as pd

from mnmt_laws.errors import TableError
from mnmt_laws.tables.column_map import BETWEEN, ColumnMap, starred_columns
from mnmt_laws.tables.metrics import metric_of_column
from mnmt_laws.tables.names import gathered_pattern
from mnmt_laws.tables.numbers import parse_numbers
from mnmt_laws.tables.row_location import RowLocator

_ENDS = ("__MIN", "__MAX")
_LENGTHS = {
    "tokens": re.compile(r"(?<![a-z])tokens?(?![a-z])(?!.*per)"),
    "step": re.compile(r"(?<![a-z])(?:steps?|iter(?:ation)?s?|updates?|epochs?)(?![a-z])"),
}


def read_panel(
    frame: pd.DataFrame, mapping: ColumnMap, locator: RowLocator
) -> tuple[pd.DataFrame, ColumnMap]:
    """Return a panel as a row for each measurement of a run, and what its columns hold.

    Its first column is the step or the tokens, by its name or by the mapping; all others are of runs. Other
    tables stay as they are.

    Raises:
        TableError: If the panel shows several metrics and none is chosen, or goes over something else.
    """
    columns, names = dict(mapping.columns), list(frame.columns)
    pattern = columns.pop("value", "*")
    if len(names) < 2 or not all(BETWEEN in name for name in names[1:]) or "*" not in pattern:
        return frame, mapping
    if pattern == "*":
        pattern = f"*{BETWEEN}{_only_metric(names, locator)}"
    panels = _panels_of_tasks(pattern, names, locator)
    if not {"step", "tokens"} & set(columns):
        columns[_length(names[0], locator)] = names[0]
    kinds = {column: "number" for runs in panels.values() for column in runs.values()}
    numbers, _ = parse_numbers(frame.assign(row=frame.index + 2), kinds, locator)
    columns_of = {
        (task, run.removeprefix("Group: ")): numbers[column]
        for task, runs in panels.items()
        for run, column in runs.items()
    }
    wide = pd.DataFrame(columns_of).rename_axis(columns=["task", "run"])
    long = wide.melt(ignore_index=False).dropna().sort_index(kind="stable")
    long = long if "*" in pattern.rpartition(BETWEEN)[2] else long.drop(columns="task")
    metric = metric_of_column(pattern.rpartition(BETWEEN)[2])
    long[names[0]], long["metric"] = frame[names[0]], metric
    return long, ColumnMap(columns=columns)


def _metrics(names: Sequence[str]) -> list[str]:
    parts = [name.rpartition(BETWEEN)[2] for name in names[1:] if not name.endswith(_ENDS)]
    return [name for name in dict.fromkeys(parts) if not name.startswith("_")]


def _panels_of_tasks(pattern: str, names: Sequence[str], locator: RowLocator) -> dict[str, dict[str, str]]:
    """Return the columns by task and run; a second `*`, in the metric, stands for the task."""
    head, _, metric = pattern.rpartition(BETWEEN)
    tasks = starred_columns(metric, _metrics(names)) if head else {}
    patterns = {task: f"{head}{BETWEEN}{name}" for task, name in tasks.items()} or {"": pattern}
    maps = {task: ColumnMap(columns={"value": text}) for task, text in patterns.items()}
    for values in maps.values():
        values.require(names, locator.source)
    return {task: values.starred("value", names) for task, values in maps.items()}


def _only_metric(names: Sequence[str], locator: RowLocator) -> str:
    metrics = _metrics(names)
    if len(metrics) != 1:
        raise TableError(
            f"{locator.source} row 1: columns of several metrics ({', '.join(metrics)}); choose one, as in "
            f'--column "value=*{BETWEEN}{gathered_pattern(metrics) or (metrics or ["METRIC"])[0]}".'
        )
    return metrics[0]


def _length(name: str, locator: RowLocator) -> str:
    """Return whether a column's name says tokens or steps."""
    for length, pattern in _LENGTHS.items():
        if pattern.search(name.casefold()):
            return length
    raise TableError(
        f"{locator.source} row 1: `{name}` is neither steps nor tokens; export the panel over these, or say "
        f'--column "step={name}" if it grows with the steps of every run.'
    )
