"""Lines of text files, columns of tables, and their checksums."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mnmt_eval.errors import EvalError

_JSON_LINES = (".jsonl", ".ndjson")
_TABLES = (".tsv", ".tab")


def read_lines(path: Path) -> list[str]:
    r"""Return the lines of a text file, which end with \n or \r\n and nothing else.

    Raises:
        EvalError: If a line is not UTF-8; the message names the line.
        OSError: If the file cannot be read.
    """
    lines = path.read_bytes().split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [decode_line(line, name=str(path), number=number) for number, line in enumerate(lines, start=1)]


def decode_line(line: bytes, *, name: str, number: int) -> str:
    """Return the text of a line without its end, and without a byte order mark in the first line.

    Args:
        line: The line's bytes.
        name: The file's name in messages.
        number: The line's number, from 1.

    Raises:
        EvalError: If the line is not UTF-8.
    """
    content = line.removesuffix(b"\n").removesuffix(b"\r")
    try:
        return content.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError:
        raise EvalError(f"{name}:{number}: not valid UTF-8; convert the text to UTF-8.") from None


def read_text(path: Path, column: str | None, *, option: str) -> list[str]:
    """Return the sentences of a file: its lines, or a column of a table.

    Args:
        path: A plain file; or TSV, whose cells are taken as they are; or JSON lines, an object a line.
        column: A name in the first line of TSV, or a number from 1 if TSV has no names; a key of JSON lines.
            None for a plain file.
        option: The option that names a column, for messages.

    Raises:
        EvalError: If there is no such column, a line lacks it, or a plain file is plainly a table.
        OSError: If the file cannot be read.
    """
    lines = read_lines(path)
    if column is None:
        _refuse_table(path, lines, option)
        return lines
    if path.suffix in _JSON_LINES or (lines and isinstance(_parse(lines[0]), dict)):
        return [_json_text(path, number, line, column, option) for number, line in enumerate(lines, start=1)]
    return _tsv_column(path, [line.split("\t") for line in lines], column, option)


def _refuse_table(path: Path, lines: Sequence[str], option: str) -> None:
    """Refuse a file that is plainly TSV or JSON lines, whose lines would be scored with all their columns."""
    first = lines[0] if lines else ""
    if first.startswith("{") and isinstance(keys := _parse(first), dict):
        raise EvalError(f"{path}: holds JSON lines; name a key with {option}: {', '.join(keys)}.")
    tabs = {line.count("\t") for line in lines}
    if "\t" in first and (path.suffix in _TABLES or (len(lines) > 1 and len(tabs) == 1)):
        cells = first.split("\t")
        names = ", ".join(_shorten(cell) for cell in cells)
        raise EvalError(
            f"{path}: is a table of {len(cells)} columns; name one with {option}, by its name in the first "
            f"line ({names}), or by its number if there are no names."
        )


def _tsv_column(path: Path, rows: Sequence[Sequence[str]], column: str, option: str) -> list[str]:
    names = rows[0] if rows else []
    if (count := names.count(column)) > 1:
        raise EvalError(f"{path}:1: has {count} columns called {column!r}; rename one.")
    if is_number := not count and column.isdecimal() and 0 < int(column) <= len(names):
        place = int(column) - 1
    elif count:
        place = names.index(column)
    else:
        has = ", ".join(map(_shorten, names)) or "no columns"
        raise EvalError(f"{path}: has no column {column!r} for {option}; its first line has {has}.")
    for number, row in enumerate(rows, start=1):
        if len(row) != len(names):
            raise EvalError(
                f"{path}:{number}: must have as many columns as the first line ({len(names)}), "
                f"but has {len(row)}."
            )
    return [row[place] for row in rows[not is_number :]]


def _json_text(path: Path, number: int, line: str, key: str, option: str) -> str:
    record = _parse(line)
    if not isinstance(record, dict):
        raise EvalError(f"{path}:{number}: must be a JSON object, but is {_shorten(line) or 'blank'}.")
    if key not in record:
        raise EvalError(
            f"{path}:{number}: has no key {key!r} for {option}; it has {', '.join(record) or 'none'}."
        )
    if not isinstance(value := record[key], str):
        raise EvalError(f"{path}:{number}: {key!r} must be text, but is {_shorten(json.dumps(value))}.")
    return value


def _parse(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _shorten(text: str) -> str:
    """Return the beginning of a text, as messages quote it."""
    return text if len(text) <= 20 else f"{text[:20]}…"


def checksum(*texts: Sequence[str]) -> str:
    """Return the SHA-256 of one or more texts, each a sequence of lines."""
    return hashlib.sha256(json.dumps([list(lines) for lines in texts]).encode()).hexdigest()
