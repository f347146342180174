"""Numbers as people write them: decimal commas, thousands separators, `20M` and `10%`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain

import numpy as np
import pandas as pd

from mnmt_laws.errors import ArgumentError, TableError
from mnmt_laws.tables.row_location import RowLocator, format_value, reject

_MISSING = frozenset({"", "-", "–", "—", "nan", "na", "n/a", "#n/a", "null", "none", "<na>"})
_MULTIPLES = {"k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12}
_SUFFIX = re.compile(r"(.*\d[.,]?)\s*([kmbgt])(?:r?illions?|n|io)?", re.IGNORECASE)
_SPACES = re.compile(r"(?<=\d)[\s'’](?=\d{3}(?!\d))")
_OTHER = {".": ",", ",": "."}
_ALMOST = {"count": ", such as 2e7 or 20M", "share": ", such as 0.1 or 10%"}


def _form(mark: str, other: str) -> re.Pattern[str]:
    """Return how a number looks by its decimal mark; group 1 has thousands between the other mark."""
    plain = rf"[+-]?(?:\d+{mark}?\d*|{mark}\d+)(?:e[+-]?\d+)?"
    return re.compile(rf"{plain}|([+-]?\d{{1,3}}(?:{other}\d{{3}})+(?:{mark}\d*)?)", re.IGNORECASE)


_FORMS = {".": _form(r"\.", ","), ",": _form(",", r"\.")}


def parse_count(text: str) -> float:
    """Return a count such as `2e7`, `20M` or `1,000,000`.

    Raises:
        ValueError: If it is none.
    """
    number = _number(text.strip(), "count", ".")
    if number is None:
        raise ArgumentError(f"{text!r} must be a number, such as 2e7 or 20M.")
    return number


def parse_numbers(
    frame: pd.DataFrame, kinds: Mapping[str, str], locator: RowLocator
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return a frame with its columns of numbers as floats, and a line for each unusual way of writing.

    All numbers of a file have one decimal mark: that by which all of them can be read. Only counts may have
    thousands separators and suffixes, only shares percent signs.

    Args:
        frame: A file's cells, and `row`.
        kinds: `count`, `share`, `number` or `text` by column.
        locator: How messages name the rows.

    Raises:
        TableError: If a cell is no number, or may be one of two.
    """
    numeric = {name: kind for name, kind in kinds.items() if kind != "text" and name in frame}
    texts = {name: _texts(frame[name]) for name in numeric}
    mark, notes = _decimal_mark(frame, texts, numeric, locator)
    columns = {}
    for name, kind in numeric.items():
        read = {text: _number(text, kind, mark) for text in texts[name]}
        columns[name] = _replace(frame, name, kind, read, locator)
        notes += _notes(name, kind, mark, read)
    return frame.assign(**columns), tuple(notes)


def has_suffixes(values: pd.Series) -> bool:
    """Return whether any number has a suffix of its own, as `20M`."""
    return any(_SUFFIX.fullmatch(text) for text in _texts(values))


def _texts(values: pd.Series) -> list[str]:
    """Return the distinct texts that are not missing, sorted."""
    if pd.api.types.is_numeric_dtype(values.dtype) and not isinstance(values.dtype, pd.CategoricalDtype):
        return []
    texts = {value.strip() for value in values.unique() if isinstance(value, str)}
    return sorted(text for text in texts if text.lower() not in _MISSING)


def _number(text: str, kind: str, mark: str) -> float | None:
    """Return what a text says by this decimal mark; None if it is no number of its kind."""
    factor = 1.0
    if kind == "share" and text.endswith("%"):
        percent = _number(text[:-1].rstrip(), "number", mark)
        return None if percent is None else percent / 100
    if kind == "count":
        text = _SPACES.sub("", text)
        if match := _SUFFIX.fullmatch(text):
            text, factor = match[1], _MULTIPLES[match[2].lower()]
    match = _FORMS[mark].fullmatch(text)
    if match and not (match[1] and kind != "count"):
        return float(text.replace(_OTHER[mark], "").replace(mark, ".")) * factor
    return float(text) if re.fullmatch("[+-]?inf(inity)?", text, re.IGNORECASE) else None


def _decimal_mark(
    frame: pd.DataFrame, texts: Mapping[str, list[str]], kinds: Mapping[str, str], locator: RowLocator
) -> tuple[str, list[str]]:
    """Return the mark by which all numbers of a file can be read, and a line if it is a comma."""
    only: dict[str, tuple[str, str]] = {}
    unclear: tuple[str, str] | None = None
    for name, text in chain.from_iterable(((name, text) for text in group) for name, group in texts.items()):
        fits = {mark: number for mark in ".," if (number := _number(text, kinds[name], mark)) is not None}
        if len(fits) == 1:
            only.setdefault(next(iter(fits)), (name, text))
        elif fits and "," in text:
            unclear = unclear or (name, text)
    if len(only) == 2:
        place, other = (f"`{name}` {text}" for name, text in (only[","], only["."]))
        raise TableError(
            f"{_locate(frame, *only[','], locator)}: {place} has a decimal comma, but {other} in "
            f"{_locate(frame, *only['.'], locator)} a decimal point; write all numbers alike."
        )
    if unclear and not only:
        name, text = unclear
        raise TableError(
            f"{_locate(frame, name, text, locator)}: `{name}` {text} may be {text.replace(',', '.')} or "
            f"{text.replace(',', '')}; write it so."
        )
    if "," not in only:
        return ".", []
    name, text = only[","]
    number = _number(text, kinds[name], ",")
    return ",", [f"numbers have decimal commas: `{name}` {text} is read as {format_value(number)}."]


def _locate(frame: pd.DataFrame, name: str, text: str, locator: RowLocator) -> str:
    return locator.name(frame, int(_stripped(frame[name]).eq(text).to_numpy().argmax()))


def _stripped(values: pd.Series) -> pd.Series:
    return values.map(lambda value: value.strip() if isinstance(value, str) else value)


def _replace(
    frame: pd.DataFrame, name: str, kind: str, read: Mapping[str, float | None], locator: RowLocator
) -> pd.Series:
    """Return a column as floats.

    Raises:
        TableError: If a text is no number, or some shares have percent signs and others not.
    """
    if not read:
        return pd.to_numeric(frame[name], errors="coerce").astype(float)
    cells = _stripped(frame[name])
    wrong = [text for text, number in read.items() if number is None]
    rule = f"`{name}` must be a number{_ALMOST.get(kind, '')}"
    reject(cells.isin(wrong).to_numpy(), frame, locator, rule, cells)
    shares = [text for text, number in read.items() if number and not text.endswith("%")]
    if any(text.endswith("%") for text in read):
        rule = f"`{name}` must be a percentage in every row or in none"
        reject(cells.isin(shares).to_numpy(), frame, locator, rule, cells)
    numbers = cells.map(lambda value: read.get(value, np.nan) if isinstance(value, str) else value)
    return pd.to_numeric(numbers, errors="coerce").astype(float)


def _notes(name: str, kind: str, mark: str, read: Mapping[str, float | None]) -> list[str]:
    """Return a line for each of suffixes, percent signs and thousands separators."""
    lines: dict[str, str] = {}
    for text, number in read.items():
        bare = _SPACES.sub("", text)
        way = (
            "has suffixes" if kind == "count" and _SUFFIX.fullmatch(bare)
            else "holds percentages" if text.endswith("%")
            else "has thousands separators" if _OTHER[mark] in text or bare != text
            else ""
        )  # fmt: skip
        lines.setdefault(way, f"`{name}` {way}: {text} is read as {format_value(number)}.")
    return [line for way, line in lines.items() if way]
