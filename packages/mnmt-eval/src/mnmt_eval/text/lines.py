"""Lines of text files and their checksums, columns of TSV and CSV, and keys of JSON lines."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mnmt_data import readers
from mnmt_data.errors import DataError
from mnmt_eval.errors import EvalError
from mnmt_eval.text.n_best import best_translations

Row = tuple[str, Sequence[str]]
"""The place of a row, for messages, and its cells."""

_LONGEST_CELL = 2**31 - 1  # characters of a cell of CSV; the module's own limit is 131,072
_USUAL_NAME = re.compile("id|src|source|tgt|target|refs?|references?|mt|hyp|hypothesis|translation", re.I)


def read_lines(path: Path) -> list[str]:
    r"""Return the lines of a text file, perhaps compressed, which end with \n or \r\n and nothing else.

    Raises:
        DataError: If there is no such file, it is cut off or no text, or a line is not UTF-8.
    """
    return readers.lines_of(readers.File(path).read(), str(path))


def decode_line(line: bytes, *, name: str, number: int) -> str:
    """Return the text of a line without its end, and without a byte order mark in the first line.

    Args:
        line: The line's bytes.
        name: The file's name in messages.
        number: The line's number, from 1.

    Raises:
        DataError: If the line is not UTF-8, or the first begins like a file that is no text.
    """
    content = readers.check_head(line, name) if number == 1 else line
    try:
        return content.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(readers.not_utf8(name, number, error, readers.utf8_remedy(line))) from None


def join_lines(text: str) -> str:
    """Return a text with a space in place of each line break, so that it is one line of a file."""
    return text.replace("\n", " ").replace("\r", " ")


def checksum(*texts: Sequence[str]) -> str:
    """Return the SHA-256 of one or more texts, each a sequence of lines."""
    return hashlib.sha256(json.dumps([list(lines) for lines in texts]).encode()).hexdigest()


def read_text(path: Path, column: str | None = None, *, option: str = "--column") -> list[str]:
    """Return the sentences of a file.

    Args:
        path: A file with a sentence a line; TSV without quotes; `.csv`, whose cells may stand in quotes; or
            JSON lines, an object a line.
        column: A name in the first line of TSV or CSV, or a number from 1 if it has no names; a key of JSON
            lines. None for a file with a sentence a line.
        option: The option that names a column, for messages.

    Raises:
        EvalError: If there is no such column, a line lacks it, or the file is plainly a table, whose lines
            would be scored with all their columns.
        DataError: If the file cannot be read, or is no text.
    """
    lines = read_lines(path)  # once, as it may be a pipe
    if column is None and option == "--column" and (best := best_translations(path, lines)):
        return best
    if column is None:
        _refuse_table(path, lines, option)
        return lines
    if holds_objects(lines):
        return [text_of(record, column, place, option) for place, record in read_objects(path, lines)]
    return _cells(path, split_rows(path, lines), column, option)


def holds_objects(lines: Sequence[str]) -> bool:
    """Return whether lines are JSON lines, by the first."""
    return bool(lines and _object(lines[0]))


def read_objects(path: Path, lines: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place and the object of each of JSON lines.

    Raises:
        EvalError: If a line holds no object.
    """
    for number, line in enumerate(lines, start=1):
        if (record := _object(line)) is None:
            raise EvalError(f"{path}:{number}: must be a JSON object, but is {line[:20] or 'blank'}.")
        yield f"{path}:{number}", record


def _object(line: str) -> dict[str, Any] | None:
    """Return the JSON object of a line; None if it holds none."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def text_of(record: dict[str, Any], key: str, place: str, option: str) -> str:
    """Return the text of a key of a JSON object.

    Raises:
        EvalError: If there is no such key, or its value is not text.
    """
    if not isinstance(record.get(key), str):
        raise EvalError(f"{place}: has no text under {key!r} for {option}; it has {', '.join(record)}.")
    return str(record[key])


def split_rows(path: Path, lines: Sequence[str]) -> list[Row]:
    """Return the rows of CSV if the file ends in `.csv`, else of TSV.

    Raises:
        EvalError: If a row has more or fewer cells than the first, or quotes of CSV do not match.
    """
    if _is_csv(path):
        rows = list(_csv_rows(path, lines))
    else:
        rows = [(f"{path}:{number}", line.split("\t")) for number, line in enumerate(lines, start=1)]
    for place, cells in rows:
        if len(cells) != len(rows[0][1]):
            raise EvalError(
                f"{place}: must have {len(rows[0][1])} columns, as the first line has, but has {len(cells)}."
            )
    return rows


def _is_csv(path: Path) -> bool:
    return readers.plain_name(path).lower().endswith(".csv")


def _csv_rows(path: Path, lines: Sequence[str]) -> Iterator[Row]:
    csv.field_size_limit(_LONGEST_CELL)
    rows = csv.reader((f"{line}\n" for line in lines), strict=True)
    try:
        for cells in rows:
            yield f"{path}:{rows.line_num}", cells
    except csv.Error as error:
        raise EvalError(
            f"{path}:{rows.line_num}: not CSV: {error}; check the quotes and ends of lines."
        ) from None


def _refuse_table(path: Path, lines: Sequence[str], option: str) -> None:
    if holds_objects(lines):
        raise EvalError(f"{path}: holds JSON lines; name the key of the texts with {option}.")
    tabs = {line.count("\t") for line in lines}
    if _is_csv(path) or (len(lines) > 1 and len(tabs) == 1 and tabs != {0}):
        raise EvalError(
            f"{path}: is a table; name a column with {option}, by its name in the first line, or by its "
            "number if there are no names."
        )


def _cells(path: Path, rows: Sequence[Row], column: str, option: str) -> list[str]:
    """Return a column, without its name."""
    names = rows[0][1] if rows else []
    if names.count(column) == 1:
        place = names.index(column)
        return [cells[place] for _, cells in rows[1:]]
    if column in names or not (column.isdecimal() and 0 < int(column) <= len(names)):
        raise EvalError(f"{path}: must have one column {column!r} for {option}; it has {', '.join(names)}.")
    # Names taken for a sentence would be scored.
    if all(len(name.split()) == 1 for name in names) and any(map(_USUAL_NAME.fullmatch, names)):
        raise EvalError(f"{path}:1: holds names ({', '.join(names)}): name the column, not its number.")
    return [cells[int(column) - 1] for _, cells in rows]
