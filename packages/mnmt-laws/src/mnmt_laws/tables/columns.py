"""The columns of a run table: which there are, and how their fields are read."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from mnmt_laws.tables.row_location import Places, reject

REQUIRED = ("size", "task", "weight", "metric", "value")
LABELS = ("run", "architecture", "mixture", "testset", "role")
NUMBERS = ("encoder_size", "decoder_size", "step", "tokens", "flops", "seed", "irreducible")
KINDS = {
    **dict.fromkeys(("task", "metric", *LABELS), "text"),
    **dict.fromkeys(("size", "weight", "value", *NUMBERS), "number"),
}
"""`text` or `number`, by column."""

_MISSING = frozenset({"", "nan", "na", "n/a", "null", "none", "<na>"})
_MULTIPLES = {"k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12}

Floats = np.ndarray[tuple[int], np.dtype[np.float64]]


def read_labels(frame: pd.DataFrame, column: str, places: Places, *, required: bool) -> pd.Series:
    """A column as stripped text; empty where nothing is given.

    Raises:
        TableError: If it is required and empty somewhere.
    """
    if column not in frame.columns:
        return pd.Series("", index=frame.index, dtype=object)
    codes, texts = _distinct(frame[column])
    labels = np.array([*texts, ""], dtype=object)[codes]
    if required:
        empty = np.array([*(text == "" for text in texts), True])[codes]
        reject(empty, frame, places, f"`{column}` is empty; give one in every row")
    return pd.Series(labels, index=frame.index, dtype=object)


def read_numbers(frame: pd.DataFrame, column: str, places: Places, *, required: bool) -> pd.Series:
    """A column as floats; NaN where nothing is given.

    Raises:
        TableError: If a field is no finite number, or it is required and empty somewhere.
    """
    if column not in frame.columns:
        return pd.Series(np.nan, index=frame.index)
    numbers = _parse(frame, column, places)
    reject(
        np.isinf(numbers),
        frame,
        places,
        f"`{column}` must be finite; leave the row out if the run has no result",
        frame[column],
    )
    if required:
        rule = f"`{column}` is empty or NaN; leave the row out if the run has no result"
        reject(np.isnan(numbers), frame, places, rule)
    return pd.Series(numbers, index=frame.index)


def _parse(frame: pd.DataFrame, column: str, places: Places) -> Floats:
    given = frame[column]
    if pd.api.types.is_numeric_dtype(given.dtype) and not isinstance(given.dtype, pd.CategoricalDtype):
        return given.to_numpy(dtype=float, na_value=np.nan)
    codes, texts = _distinct(given)
    parsed = np.array([*map(_number, texts), np.nan])
    unread = [
        bool(np.isnan(number)) and text.lower() not in _MISSING
        for text, number in zip(texts, parsed, strict=False)
    ]
    wrong = np.array([*unread, False])[codes]
    if wrong.any():
        text = texts[codes[int(wrong.argmax())]]
        rule = f"`{column}` must be a number{_remedy(text)}"
        reject(wrong, frame, places, rule, given)
    return parsed[codes]


def _distinct(given: pd.Series) -> tuple[np.ndarray[tuple[int], np.dtype[np.intp]], list[str]]:
    """The position of each field among the distinct ones, -1 where nothing is given, and those as text."""
    codes, distinct = pd.factorize(given)
    return codes, [str(value).strip() for value in distinct]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def _remedy(text: str) -> str:
    """How to write what was meant, if that can be told."""
    if re.fullmatch(r"[+-]?\d{1,3}(,\d{3}){2,}(\.\d+)?", text):
        return f"; write {text.replace(',', '')}, without commas"
    if re.fullmatch(r"[+-]?\d*,\d+(e[+-]?\d+)?", text, re.IGNORECASE):
        return f"; write a decimal point, {text.replace(',', '.')}"
    if re.fullmatch(r"\d+(\.\d+)?\s*%", text):
        return f"; write a share, {float(text.rstrip('% ')) / 100:g}"
    if found := re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmbgt])", text, re.IGNORECASE):
        return f"; write {float(found[1]) * _MULTIPLES[found[2].lower()]:g}".replace("e+0", "e").replace(
            "e+", "e"
        )
    return ""
