"""JSON and JSON lines of run records, whose mistakes are `RunError`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mnmt_data import store
from mnmt_model.errors import RunError


def write_json(path: Path, value: Any) -> None:
    """Replace `path` atomically by `value` as JSON."""
    store.write_json(path, value, end="")


def read_json(path: Path) -> Any:
    """Return the JSON value in `path`.

    Raises:
        RunError: If the file is missing or is not JSON.
    """
    return store.read_json(path, error=RunError)


def append_lines(path: Path, values: Iterable[Any]) -> None:
    """Append one JSON line a value, in place of a last line that a kill cut off."""
    store.append_json_lines(path, values)


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the values of a JSON-lines file, none if it is missing; a line that a kill cut off is left out.

    Raises:
        RunError: If any other line is not JSON; the message names it.
    """
    return store.read_json_lines(path, error=RunError)


def keep_lines_up_to(path: Path, step: int) -> None:
    """Drop the lines of `path` later than `step`, atomically; they are about to be written again."""
    store.write_json_lines(path, [line for line in read_lines(path) if line["step"] <= step])
