"""Files of candidate translations: those that `mnmt-eval translate` writes, and any table or JSON lines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from mnmt_eval.errors import EvalError
from mnmt_eval.text import is_json_lines, parse_object, read_lines, split_rows, text_of, value_of


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
        path: TSV or `.csv`, a candidate a row; or JSON lines, an object a candidate, or one a source line
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
    rows = _json_rows if is_json_lines(path, lines) else _table_rows
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
    rows = split_rows(path, lines)
    names, has_names = rows[0].cells, not any(cell.isdecimal() for cell in rows[0].cells)
    if not has_names:
        names = [str(number) for number in range(1, len(names) + 1)]
    line, text = (_find_column(path, names, each) for each in (("line", "text") if has_names else ("1", "3")))
    score = None if score_column is None else _find_column(path, names, score_column)
    for row in rows[has_names:]:
        yield _Row(
            place=row.place,
            line=_whole(row.cells[line], row.place),
            text=row.cells[text],
            score=None if score is None else _finite(row.cells[score], row.place),
        )


def _find_column(path: Path, names: Sequence[str], column: str) -> int:
    if names.count(column) != 1:
        raise EvalError(f"{path}: must have one column {column}, but its columns are {', '.join(names)}.")
    return names.index(column)


def _json_rows(path: Path, lines: Sequence[str], score_column: str | None) -> Iterator[_Row]:
    for number, line in enumerate(lines, start=1):
        place = f"{path}:{number}"
        record = parse_object(line, place)
        source_line = _whole(value_of(record, "line", place), place)
        for candidate in _candidates_of(record, place):
            score = None if score_column is None else value_of(candidate, score_column, place)
            yield _Row(
                place=place,
                line=source_line,
                text=text_of(candidate, "text", place),
                score=None if score_column is None else _finite(score, place),
            )


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
