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
NUMBERS = (
    "encoder_size", "decoder_size", "step", "tokens", "unique_tokens", "flops", "seed", "irreducible",
    "cooldown_start", "annealed",
)  # fmt: skip
KINDS = {
    **dict.fromkeys(("task", "metric", *LABELS), "text"),
    **dict.fromkeys(("size", "weight", "value", *NUMBERS), "number"),
}
"""`text` or `number`, by column."""

_WHERE_INFINITE = {"size": "give the number of parameters"}
_MISSING = frozenset({"", "nan", "na", "n/a", "null", "none", "<na>"})
_MULTIPLES = {"k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12}

Floats = np.ndarray[tuple[int], np.dtype[np.float64]]


def read_labels(frame: pd.DataFrame, column: str, locator: RowLocator, *, required: bool) -> pd.Series:
    """Return a column as stripped text; empty fields become empty text.

    Raises:
        TableError: If it is required and empty somewhere.
    """
    if column not in frame.columns:
        return pd.Series("", index=frame.index, dtype=object)
    codes, texts = _factorize(frame[column])
    labels = np.array([*texts, ""], dtype=object)[codes]
    if required:
        empty = np.array([*(text == "" for text in texts), True])[codes]
        reject(empty, frame, locator, f"`{column}` is empty; give one in every row")
    return pd.Series(labels, index=frame.index, dtype=object)


def read_numbers(frame: pd.DataFrame, column: str, locator: RowLocator, *, required: bool) -> pd.Series:
    """Return a column as floats; empty fields become NaN.

    Raises:
        TableError: If a field is no finite number, or it is required and empty somewhere.
    """
    if column not in frame.columns:
        return pd.Series(np.nan, index=frame.index)
    numbers = _parse(frame, column, locator)
    remedy = _WHERE_INFINITE.get(column, "leave the row out if the run has no result")
    reject(np.isinf(numbers), frame, locator, f"`{column}` must be finite; {remedy}", frame[column])
    if required:
        rule = f"`{column}` is empty or NaN; leave the row out if the run has no result"
        reject(np.isnan(numbers), frame, locator, rule)
    return pd.Series(numbers, index=frame.index)


def _parse(frame: pd.DataFrame, column: str, locator: RowLocator) -> Floats:
    values = frame[column]
    if pd.api.types.is_numeric_dtype(values.dtype) and not isinstance(values.dtype, pd.CategoricalDtype):
        return values.to_numpy(dtype=float, na_value=np.nan)
    codes, texts = _factorize(values)
    parsed = np.array([*map(_number, texts), np.nan])
    unread = [
        bool(np.isnan(number)) and text.lower() not in _MISSING
        for text, number in zip(texts, parsed, strict=False)
    ]
    wrong = np.array([*unread, False])[codes]
    if wrong.any():
        text = texts[codes[int(wrong.argmax())]]
        rule = f"`{column}` must be a number{number_remedy(text)}"
        reject(wrong, frame, locator, rule, values)
    return parsed[codes]


def _factorize(values: pd.Series) -> tuple[np.ndarray[tuple[int], np.dtype[np.intp]], list[str]]:
    """Return the position of each field among the distinct ones (-1 if empty), and these as text."""
    codes, distinct = pd.factorize(values)
    return codes, [str(value).strip() for value in distinct]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def number_remedy(text: str) -> str:
    """Return the right way to write a field that is almost a number, or an empty text."""
    if re.fullmatch(r"[+-]?\d{1,3}(,\d{3}){2,}(\.\d+)?", text):
        return f"; write {text.replace(',', '')}, without commas"
    if re.fullmatch(r"[+-]?\d*,\d+(e[+-]?\d+)?", text, re.IGNORECASE):
        return f"; write a decimal point, {text.replace(',', '.')}"
    if re.fullmatch(r"\d+(\.\d+)?\s*%", text):
        return f"; write a share, {float(text.rstrip('% ')) / 100:g}"
    if match := re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmbgt])", text, re.IGNORECASE):
        return f"; write {float(match[1]) * _MULTIPLES[match[2].lower()]:g}".replace("e+0", "e").replace(
            "e+", "e"
        )
    return ""


_CLOSE = 0.8


def closest(name: str, choices: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the choice most similar to `name`, ignoring case, or None if there is no similar one."""
    plain = {_plain(choice): choice for choice in choices}
    matches = difflib.get_close_matches(_plain(name), list(plain), n=1, cutoff=cutoff)
    return plain[matches[0]] if matches else None


def column_warnings(columns: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return a line for each unread column with a name similar to that of an absent one."""
    absent = [name for name in known if name not in columns]
    slips = {name: closest(name, absent, cutoff=_CLOSE) for name in columns if name not in known}
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
