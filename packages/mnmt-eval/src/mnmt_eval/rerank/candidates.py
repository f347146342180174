"""Files of candidate translations: those that `mnmt-eval translate` writes, and any table or JSON lines."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from mnmt_eval.errors import EvalError
from mnmt_eval.text import read_lines


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """The candidates for the translation of a line."""

    texts: tuple[str, ...]
    """At least one, in the order of the file."""
    scores: tuple[float, ...] = ()
    """The score of each, if a column of scores was read."""


@dataclass(frozen=True, kw_only=True)
class _Row:
    """One candidate, as the file has it."""

    place: str
    """The file and line, for messages."""
    line: int
    text: str
    score: float | None


def read_candidates(path: Path, *, score_column: str | None = None) -> list[Candidates]:
    r"""Read the candidates of each source line.

    Args:
        path: TSV, a candidate a row; or JSON lines, an object a candidate, or one a source line
            with the list `n_best`, as `mnmt-eval translate --json` writes. The candidates of a source line
            follow each other, and source lines are numbered from 1 (or 0) without gaps. The columns `line`
            and `text` hold the source line and the candidate; or the first and the third where a whole number
            in the first line shows that it holds no names.
        score_column: The name of a column or key of scores, of which higher is better; or its number, from 1,
            where there are no names.

    Raises:
        EvalError: If the file is neither, lacks a column, or its line numbers have gaps.
        OSError: If the file cannot be read.
    """
    lines = read_lines(path)
    if not lines:
        raise EvalError(f"{path}: must have at least one candidate, but is empty.")
    rows = _json_rows if lines[0].startswith("{") else _table_rows
    sources, expected = [], None
    for number, group in groupby(rows(path, lines, score_column), key=lambda row: row.line):
        candidates = list(group)
        if number != expected and not (expected is None and number in (0, 1)):
            allowed = "0 or 1" if expected is None else f"{expected - 1} or {expected}"
            raise EvalError(f"{candidates[0].place}: must be of source line {allowed}, but is of {number}.")
        expected = number + 1
        scores = tuple(row.score for row in candidates if row.score is not None)
        sources.append(Candidates(texts=tuple(row.text for row in candidates), scores=scores))
    return sources


def _table_rows(path: Path, lines: Sequence[str], score_column: str | None) -> Iterator[_Row]:
    rows = [line.split("\t") for line in lines]
    names, has_names = rows[0], not any(cell.isdecimal() for cell in rows[0])
    if not has_names:
        names = [str(number) for number in range(1, len(names) + 1)]
    line, text = (_find_column(path, names, each) for each in (("line", "text") if has_names else ("1", "3")))
    score = None if score_column is None else _find_column(path, names, score_column)
    for number, cells in enumerate(rows[has_names:], start=1 + has_names):
        place = f"{path}:{number}"
        if len(cells) != len(names):
            raise EvalError(
                f"{place}: must have as many columns as the first line ({len(names)}), but has {len(cells)}."
            )
        yield _Row(
            place=place,
            line=_whole(cells[line], place),
            text=cells[text],
            score=None if score is None else _finite(cells[score], place),
        )


def _find_column(path: Path, names: Sequence[str], column: str) -> int:
    if names.count(column) != 1:
        raise EvalError(f"{path}: must have one column {column}, but its columns are {', '.join(names)}.")
    return names.index(column)


def _json_rows(path: Path, lines: Sequence[str], score_column: str | None) -> Iterator[_Row]:
    for number, line in enumerate(lines, start=1):
        place = f"{path}:{number}"
        record = _parse(line, place)
        source_line = _whole(_value(record, "line", place), place)
        for candidate in _candidates_of(record, place):
            score = None if score_column is None else _value(candidate, score_column, place)
            yield _Row(
                place=place,
                line=source_line,
                text=_text(candidate, place),
                score=None if score_column is None else _finite(score, place),
            )


def _parse(line: str, place: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError:
        record = None
    if not isinstance(record, dict):
        raise EvalError(f"{place}: must be a JSON object.")
    return record


def _value(record: dict[str, Any], key: str, place: str) -> Any:
    if key not in record:
        raise EvalError(f"{place}: has no key {key!r}; it has {', '.join(record) or 'none'}.")
    return record[key]


def _text(record: dict[str, Any], place: str) -> str:
    text = _value(record, "text", place)
    if not isinstance(text, str):
        raise EvalError(f"{place}: 'text' must be text, but is {text!r}.")
    return text


def _candidates_of(record: dict[str, Any], place: str) -> list[dict[str, Any]]:
    """Return the candidates of a record, which is one itself if it has no list of them."""
    n_best = record.get("n_best", [record])
    if not isinstance(n_best, list) or not n_best or not all(isinstance(each, dict) for each in n_best):
        raise EvalError(f"{place}: 'n_best' must be a list of at least one object.")
    return n_best


def _whole(value: Any, place: str) -> int:
    if not str(value).isdecimal():
        raise EvalError(f"{place}: must have the number of its source line, but has {value!r}.")
    return int(value)


def _finite(value: Any, place: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise EvalError(f"{place}: must have a finite number as its score, but has {value!r}.")
    return number
