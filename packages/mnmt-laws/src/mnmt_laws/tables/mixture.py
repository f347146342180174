"""Training mixtures as a run table writes them: `en-de:0.3,en-zh:0.7`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from mnmt_laws.errors import TableError

_TOLERANCE = 1e-6


def format_mixture(weights: Mapping[str, float]) -> str:
    """Return `{"en-de": 0.3, "en-zh": 0.7}` as `en-de:0.3,en-zh:0.7`."""
    return ",".join(f"{task}:{float(weight)!r}" for task, weight in weights.items())


def parse_mixture(text: str, where: str) -> dict[str, float]:
    """Return the weight of each task.

    Args:
        text: `TASK:WEIGHT` items between commas.
        where: File and row, for messages.

    Raises:
        TableError: If an item cannot be read, a task is named twice, a weight is negative, or the weights
            do not sum to 1.
    """
    weights = parse_weights(text, where)
    total = math.fsum(weights.values())
    if not abs(total - 1.0) <= _TOLERANCE:
        raise TableError(f"{where}: the weights of `mixture` must sum to 1, but {text!r} sums to {total:g}.")
    return weights


def parse_weights(text: str, where: str) -> dict[str, float]:
    """Return the weight of each task of a mixture, whatever they sum to.

    Raises:
        TableError: If an item cannot be read, a task is named twice, or a weight is negative.
    """
    items = [_parse_item(item, text, where) for item in text.split(",")]
    weights = dict(items)
    if len(weights) < len(items):
        raise TableError(f"{where}: `mixture` must name a task once, but is {text!r}.")
    if min(weights.values()) < 0:
        raise TableError(f"{where}: the weights of `mixture` must not be negative, but are in {text!r}.")
    return weights


def mixture_weights(rows: pd.DataFrame, tasks: Sequence[str], source: str) -> pd.DataFrame:
    """Return the weights of all sources in the mixture of every row.

    Weights are read from `mixture`. Where that is empty, a row at weight 1 was trained on its task alone, and
    if there are two tasks, the other one has weight 1 - p.

    Args:
        rows: Rows of observations.
        tasks: All tasks of the table; sources that only mixtures name follow them.
        source: Name of the table, for messages.

    Returns:
        One row for each of `rows`, with its index, and one column for each source, that is for what some
        mixture of these rows gives weight to.

    Raises:
        TableError: If a mixture is neither given nor follows from the weight.
    """
    codes, texts = pd.factorize(rows["mixture"])
    parsed = [parse_mixture(text, source) if text else {} for text in texts]
    named = sorted({*rows["task"].unique(), *(task for weights in parsed for task in weights)} - {*tasks})
    names = [*tasks, *named]
    known = np.zeros((len(parsed), len(names)))
    place = {name: column for column, name in enumerate(names)}
    for number, weights in enumerate(parsed):
        known[number, [place[name] for name in weights]] = list(weights.values())
    table = known[codes]
    stated = np.array([bool(text) for text in texts], dtype=bool)[codes]
    if not stated.all():
        table[~stated] = _from_task_weight(rows[~stated], names, source)
    trained = (table > 0).any(axis=0)
    return pd.DataFrame(table[:, trained], index=rows.index, columns=pd.Index(names)[trained])


def _from_task_weight(
    rows: pd.DataFrame, names: Sequence[str], source: str
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return (rows, tasks) weights where only the weight of the row's task is known."""
    task_weight = rows["weight"].to_numpy(float)
    open_rows = task_weight != 1
    if len(names) != 2 and open_rows.any():
        row = rows["row"].iloc[int(open_rows.argmax())]
        raise TableError(
            f"{source} row {row}: the weights of the other tasks are not known; add a `mixture` column, "
            f"which reads TASK:WEIGHT,TASK:WEIGHT."
        )
    column = pd.Index(names).get_indexer(pd.Index(rows["task"]))
    weights = np.zeros((len(rows), len(names)))
    if len(names) == 2:
        weights += (1 - task_weight)[:, None]
    weights[np.arange(len(rows)), column] = task_weight
    return weights


def _parse_item(item: str, text: str, where: str) -> tuple[str, float]:
    task, colon, weight = item.strip().rpartition(":")
    try:
        if colon and task:
            return task.strip(), float(weight)
    except ValueError:
        pass
    raise TableError(f"{where}: `mixture` must read TASK:WEIGHT,TASK:WEIGHT, but is {text!r}.")
