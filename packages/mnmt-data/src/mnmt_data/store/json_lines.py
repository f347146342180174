"""JSON files and JSON lines, whose last line a killed writer may have cut off."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mnmt_data.errors import DataError
from mnmt_data.store.atomic_file import atomic_file

STALE_TRIES = 3


def _read_text(path: Path) -> str:
    """Read a file that another machine may replace; NFS then reports the opened one as stale."""
    for _ in range(STALE_TRIES):
        try:
            return path.read_text(encoding="utf-8")
        except OSError as reason:
            if reason.errno != errno.ESTALE:
                raise
    return path.read_text(encoding="utf-8")


def read_json(path: Path, *, error: type[Exception] = DataError) -> Any:
    """Return the value in a JSON file.

    Args:
        path: The file.
        error: The exception to raise.

    Raises:
        DataError: If the file is missing or is not JSON.
    """
    try:
        return json.loads(_read_text(path))
    except FileNotFoundError:
        raise error(f"{path}: no such file") from None
    except ValueError as reason:
        raise error(f"{path}: not valid JSON ({reason})") from None


def read_json_lines(path: Path, *, error: type[Exception] = DataError) -> Iterator[dict[str, Any]]:
    """Yield the value of each complete line; nothing if the file is missing.

    Args:
        path: The file.
        error: The exception to raise.

    Raises:
        DataError: If a complete line is not JSON; the message names it.
    """
    lines = path.read_text(encoding="utf-8").split("\n") if path.exists() else [""]
    for number, line in enumerate(lines[:-1], start=1):
        try:
            yield json.loads(line)
        except ValueError:
            raise error(f"{path}:{number}: not valid JSON; remove the line") from None


def append_json_lines(path: Path, values: Iterable[Any]) -> None:
    """Remove an incomplete last line, and append a line for each value."""
    _drop_incomplete_line(path)
    with path.open("a", encoding="utf-8") as file:
        file.write(_lines(values))
        file.flush()


def write_json_lines(path: Path, values: Iterable[Any]) -> None:
    """Replace a file atomically by a line for each value."""
    with atomic_file(path) as file:
        file.write(_lines(values).encode())


def _lines(values: Iterable[Any]) -> str:
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)


def _drop_incomplete_line(path: Path) -> None:
    if path.exists():
        content = path.read_bytes()
        if not content.endswith(b"\n"):
            os.truncate(path, content.rfind(b"\n") + 1)
