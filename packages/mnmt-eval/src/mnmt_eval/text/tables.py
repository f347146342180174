"""Tables of sentences: TSV, CSV and JSON lines, their rows, and a column of them."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mnmt_eval.errors import EvalError
from mnmt_eval.text.lines import read_lines

_JSON_LINES = (".jsonl", ".ndjson")
_TSV = (".tsv", ".tab")
_CSV = ".csv"
_LONGEST_CELL = 2**31 - 1
"""Characters of a cell of CSV; the module's own limit is 131,072."""
_LONGEST = 20
"""Characters of the longest name of a column, and of the longest beginning of a text in messages."""
_WORD = re.compile(rf"[A-Za-z][\w.-]{{0,{_LONGEST - 1}}}", re.ASCII)
_USUAL_NAME = re.compile("en|id|src|source|tgt|target|refs?|references?|mt|hyp|hypothesis|translation", re.I)


@dataclass(frozen=True, kw_only=True)
class TableRow:
    """A row of TSV or CSV."""

    place: str
    """The file and the line in which it ends, for messages."""
    cells: Sequence[str]


def read_text(path: Path, column: str | None, *, option: str) -> list[str]:
    """Return the sentences of a file: its lines, or a column of a table.

    Args:
        path: A plain file; or TSV, whose cells are taken as they are; or `.csv`, whose cells may stand in
            quotes; or JSON lines, an object a line.
        column: A name in the first line of TSV or CSV, or a number from 1 if it has no names; a key of JSON
            lines. None for a plain file.
        option: The option that names a column, for messages.

    Raises:
        EvalError: If there is no such column, a line lacks it, or a plain file is plainly a table.
        OSError: If the file cannot be read.
    """
    lines = read_lines(path)
    if path.suffix.lower() == ".json" and not is_json_lines(path, lines):
        raise EvalError(f"{path}: must be JSON lines, an object on every line, but is other JSON.")
    if column is None:
        _refuse_table(path, lines, option)
        return lines
    if is_json_lines(path, lines):
        places = (f"{path}:{number}" for number in range(1, len(lines) + 1))
        return [
            text_of(parse_object(line, place), column, place)
            for place, line in zip(places, lines, strict=True)
        ]
    return _column(path, split_rows(path, lines), column, option)


def is_json_lines(path: Path, lines: Sequence[str]) -> bool:
    """Return whether a file holds JSON lines: by the end of its name, or by its first line."""
    return path.suffix.lower() in _JSON_LINES or bool(lines and isinstance(_parse(lines[0]), dict))


def split_rows(path: Path, lines: Sequence[str]) -> list[TableRow]:
    """Return the rows of CSV, if the file is called so, or else of TSV.

    Raises:
        EvalError: If a row has more or fewer cells than the first, or quotes of CSV do not match.
    """
    rows = list(_csv_rows(path, lines) if path.suffix.lower() == _CSV else _tsv_rows(path, lines))
    for row in rows:
        if len(row.cells) != len(rows[0].cells):
            raise EvalError(
                f"{row.place}: must have as many columns as the first line ({len(rows[0].cells)}), "
                f"but has {len(row.cells)}."
            )
    return rows


def _tsv_rows(path: Path, lines: Sequence[str]) -> Iterator[TableRow]:
    for number, line in enumerate(lines, start=1):
        yield TableRow(place=f"{path}:{number}", cells=line.split("\t"))


def _csv_rows(path: Path, lines: Sequence[str]) -> Iterator[TableRow]:
    csv.field_size_limit(_LONGEST_CELL)
    rows = csv.reader((f"{line}\n" for line in lines), strict=True)
    try:
        for cells in rows:
            yield TableRow(place=f"{path}:{rows.line_num}", cells=cells)
    except csv.Error as error:
        raise EvalError(
            f"{path}:{rows.line_num}: not CSV: {error}; check the quotes and ends of lines."
        ) from None


def parse_object(line: str, place: str) -> dict[str, Any]:
    """Return the object on a line of JSON lines.

    Raises:
        EvalError: If it is none.
    """
    record = _parse(line)
    if not isinstance(record, dict):
        raise EvalError(f"{place}: must be a JSON object, but is {_shorten(line) or 'blank'}.")
    return record


def value_of(record: dict[str, Any], key: str, place: str) -> Any:
    """Return the value of a key of a JSON object.

    Raises:
        EvalError: If there is no such key.
    """
    if key not in record:
        raise EvalError(f"{place}: has no key {key!r}; it has {', '.join(record) or 'none'}.")
    return record[key]


def text_of(record: dict[str, Any], key: str, place: str) -> str:
    """Return the text of a key of a JSON object.

    Raises:
        EvalError: If there is no such key, or its value is no text.
    """
    value = value_of(record, key, place)
    if not isinstance(value, str):
        raise EvalError(f"{place}: {key!r} must be text, but is {_shorten(json.dumps(value))}.")
    return value


def _refuse_table(path: Path, lines: Sequence[str], option: str) -> None:
    """Refuse a file that is plainly a table, whose lines would be scored with all their columns."""
    first = lines[0] if lines else ""
    if first and is_json_lines(path, lines):
        keys = parse_object(first, f"{path}:1")
        raise EvalError(f"{path}: holds JSON lines; name a key with {option}: {', '.join(keys)}.")
    tabs = {line.count("\t") for line in lines}
    is_tsv = "\t" in first and (path.suffix.lower() in _TSV or (len(lines) > 1 and len(tabs) == 1))
    if first and (is_tsv or path.suffix.lower() == _CSV):
        cells = next(_csv_rows(path, lines) if path.suffix.lower() == _CSV else _tsv_rows(path, lines)).cells
        raise EvalError(
            f"{path}: is a table of {len(cells)} column{'s' * (len(cells) != 1)}; name one with {option}, by "
            f"its name in the first line ({_names(cells)}), or by its number if there are no names."
        )


def _column(path: Path, rows: Sequence[TableRow], column: str, option: str) -> list[str]:
    names = rows[0].cells if rows else []
    if (count := names.count(column)) > 1:
        raise EvalError(f"{path}:1: has {count} columns called {column!r}; rename one.")
    if is_number := not count and column.isdecimal() and 0 < int(column) <= len(names):
        place = int(column) - 1
    elif count:
        place = names.index(column)
    else:
        by_name = f"its first line has {_names(names) or 'no columns'}"
        has = f"it has {len(names)} columns" if column.isdecimal() else by_name
        raise EvalError(f"{path}: has no column {column!r} for {option}; {has}.")
    cells = [row.cells[place] for row in rows[not is_number :]]
    if is_number and _holds_names(rows, cells):
        raise EvalError(f"{rows[0].place}: holds names ({_names(names)}): name the column, not its number.")
    return cells


def _holds_names(rows: Sequence[TableRow], column: Sequence[str]) -> bool:
    """Return whether the first row plainly names the columns, and is no sentence of a bare table.

    Its cells are different bare words, one a usual name, and in no other row; other cells of the column are
    mostly of several words.
    """
    names, others = rows[0].cells, column[1:]
    return (
        len(set(names)) == len(names)
        and all(map(_WORD.fullmatch, names))
        and any(map(_USUAL_NAME.fullmatch, names))
        and not any(name in row.cells for row in rows[1:] for name in names)
        and 2 * sum(len(cell.split()) > 1 or len(cell) > _LONGEST for cell in others) > len(others)
    )


def _names(cells: Sequence[str]) -> str:
    return ", ".join(map(_shorten, cells))


def _parse(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _shorten(text: str) -> str:
    """Return the beginning of a text, as messages quote it."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
