"""The columns of a run table: names and kinds, how fields are read, and names that look misspelt."""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from mnmt_laws.tables.row_location import RowLocator, reject

REQUIRED = ("size", "value")
IMPLIED = ("task", "weight", "metric")
"""Columns that may be absent where they follow from the others."""

LABELS = ("run", "architecture", "mixture", "testset", "role")
COUNTS = ("encoder_size", "decoder_size", "step", "tokens", "unique_tokens", "flops", "cooldown_start")
NUMBERS = (*COUNTS, "seed", "irreducible", "annealed")
KINDS = {
    **dict.fromkeys(("task", "metric", *LABELS), "text"),
    **dict.fromkeys(("size", "weight", "value", *NUMBERS), "number"),
    **dict.fromkeys(("size", *COUNTS), "count"),
    "weight": "share",
}
"""`text`, or of numbers `count`, `share` or `number`, by column."""


def read_labels(frame: pd.DataFrame, column: str, locator: RowLocator, *, required: bool) -> pd.Series:
    """Return a column as stripped text; empty fields become empty text.

    Raises:
        TableError: If it is required and empty somewhere.
    """
    if column not in frame.columns:
        return pd.Series("", index=frame.index, dtype=object)
    codes, distinct = pd.factorize(frame[column])
    texts = [str(value).strip() for value in distinct]
    labels = np.array([*texts, ""], dtype=object)[codes]
    if required:
        empty = np.array([*(text == "" for text in texts), True])[codes]
        reject(empty, frame, locator, f"`{column}` is empty; give one in every row")
    return pd.Series(labels, index=frame.index, dtype=object)


def read_numbers(frame: pd.DataFrame, column: str, locator: RowLocator, *, required: bool) -> pd.Series:
    """Return a column of numbers that are finite or missing, all missing where there is no such column.

    Raises:
        TableError: If a number is infinite, or it is required and missing somewhere.
    """
    if column not in frame.columns:
        return pd.Series(np.nan, index=frame.index)
    numbers = frame[column].astype(float)
    result = "leave the row out if the run has no result"
    remedy = "give the number of parameters" if column == "size" else result
    reject(np.isinf(numbers.to_numpy()), frame, locator, f"`{column}` must be finite; {remedy}", numbers)
    if required:
        reject(numbers.isna().to_numpy(), frame, locator, f"`{column}` is empty or NaN; {result}")
    return numbers


LIKENESS = 0.8
"""Least likeness of two names of which one may be a slip."""


def closest(name: str, choices: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the choice most similar to `name`, ignoring case, or None if there is no similar one."""
    plain = {_plain(choice): choice for choice in choices}
    matches = difflib.get_close_matches(_plain(name), list(plain), n=1, cutoff=cutoff)
    return plain[matches[0]] if matches else None


def listed(names: Iterable[str], *, most: int = 20) -> str:
    """Return names between commas, and how many more there are."""
    present = [name for name in names if name]
    return ", ".join(present[:most]) + (f" and {len(present) - most} more" if len(present) > most else "")


def column_warnings(columns: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return a line for each unread column with a name similar to that of an absent one."""
    absent = [name for name in known if name not in columns]
    slips = {name: closest(name, absent, cutoff=LIKENESS) for name in columns if name not in known}
    return tuple(
        f"column `{name}` is not read; rename it to `{meant}` if that is what it holds."
        for name, meant in slips.items()
        if meant
    )


def task_warnings(tasks: Iterable[str]) -> tuple[str, ...]:
    """Return a line for each group of tasks that differ only by case, spaces or the kind of dash."""
    alike: dict[str, list[str]] = defaultdict(list)
    for task in sorted(tasks):
        alike[re.sub(r"[\s_‐-―-]+", "", task.casefold())].append(task)
    return tuple(
        f"tasks {', '.join(f'`{task}`' for task in group)} are kept apart, but differ only by case, "
        f"spaces or dashes; write them alike if they are one."
        for group in alike.values()
        if len(group) > 1
    )


def _plain(name: str) -> str:
    return re.sub(r"[\s-]+", "_", name.strip().casefold())
