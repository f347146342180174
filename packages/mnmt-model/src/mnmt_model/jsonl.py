"""JSON lines and JSON files written so that a reader never sees half of one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mnmt_model.errors import RunError


def write_json(path: Path, value: Any) -> None:
    """Replace `path` atomically by `value` as JSON."""
    partial = path.with_name(path.name + ".partial")
    with partial.open("w", encoding="utf-8") as file:
        json.dump(value, file, indent=2, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def read_json(path: Path) -> Any:
    """The JSON value in `path`.

    Raises:
        RunError: If the file is missing or is not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(f"{path}: no such file") from None
    except ValueError as error:
        raise RunError(f"{path}: not valid JSON ({error})") from None


def append_lines(path: Path, values: Iterable[Any]) -> None:
    """Append one JSON line a value, in place of a last line that a kill cut off."""
    _drop_unfinished_line(path)
    lines = "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)
    with path.open("a", encoding="utf-8") as file:
        file.write(lines)
        file.flush()


def _drop_unfinished_line(path: Path) -> None:
    if path.exists():
        content = path.read_bytes()
        if not content.endswith(b"\n"):
            os.truncate(path, content.rfind(b"\n") + 1)


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The values of a JSON-lines file, none if it is missing; a last line cut off by a kill is left out.

    Raises:
        RunError: If any other line is not JSON; the message names it.
    """
    lines = path.read_text(encoding="utf-8").split("\n") if path.exists() else [""]
    for number, line in enumerate(lines[:-1], start=1):
        try:
            yield json.loads(line)
        except ValueError:
            raise RunError(f"{path}:{number}: not valid JSON; remove the line") from None


def keep_lines_up_to(path: Path, step: int) -> None:
    """Drop the lines of `path` later than `step`, atomically; they are about to be written again."""
    kept = [line for line in read_lines(path) if line["step"] <= step]
    partial = path.with_name(path.name + ".partial")
    partial.unlink(missing_ok=True)
    append_lines(partial, kept)
    partial.replace(path)
