"""Settings of sizes, written into a study file whose comments and layout stay as they are."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mnmt_data.store import atomic_file
from mnmt_model.errors import RunError

Setting = float | int | list[int]

_TABLE = re.compile(r"^\s*\[")


def write_settings(path: Path, settings: Mapping[str, Mapping[str, Setting]]) -> None:
    """Give sizes of a study other settings.

    Args:
        path: The study's TOML file.
        settings: {size: {key: value}}.

    Raises:
        RunError: If a size is written in a form that cannot be edited; the file is as it was.
    """
    text = path.read_text(encoding="utf-8")
    for size, values in settings.items():
        for key, value in values.items():
            text = _with_setting(path, text, size, key, value)
    with atomic_file(path) as file:
        file.write(text.encode("utf-8"))


def _with_setting(path: Path, text: str, size: str, key: str, value: Setting) -> str:
    """Return the text with one setting more, or with another value of it."""
    expected = tomllib.loads(text)
    expected["sweep"]["sizes"][size][key] = value
    for edit in (_in_braces, _in_table):
        changed = edit(text, size, key, f"{value!r}")
        if changed is not None and _parses_as(changed, expected):
            return changed
    raise RunError(
        f"{path}: cannot change {size!r} of [sweep.sizes] without losing its layout; "
        f"set {key} = {value!r} there yourself"
    )


def _parses_as(text: str, expected: dict[str, Any]) -> bool:
    try:
        return tomllib.loads(text) == expected
    except tomllib.TOMLDecodeError:
        return False


def _in_braces(text: str, size: str, key: str, value: str) -> str | None:
    """Change `size = { … }`, all in one line."""
    line = re.compile(
        rf"^(\s*(?:sweep\.)?(?:sizes\.)?{_quoted(size)}\s*=\s*\{{)([^\n]*?)(\s*\}})", re.MULTILINE
    )
    match = line.search(text)
    if match is None:
        return None
    head, body, tail = match.groups()
    changed, count = re.subn(rf"(\b{key}\s*=\s*)(?:\[[^\]]*\]|[^,\s]+)", rf"\g<1>{value}", body)
    if not count:
        changed = f"{body}, {key} = {value}" if body.strip() else f" {key} = {value}"
        tail = tail if body.strip() else " }"
    return f"{text[: match.start()]}{head}{changed}{tail}{text[match.end() :]}"


def _in_table(text: str, size: str, key: str, value: str) -> str | None:
    """Change the table `[sweep.sizes.SIZE]`."""
    lines = text.splitlines(keepends=True)
    head = re.compile(rf"^\s*\[\s*sweep\s*\.\s*sizes\s*\.\s*{_quoted(size)}\s*\]")
    first = next((number for number, line in enumerate(lines) if head.match(line)), None)
    if first is None:
        return None
    after = (number for number in range(first + 1, len(lines)) if _TABLE.match(lines[number]))
    end = next(after, len(lines))
    last = first
    for number in range(first + 1, end):
        if re.match(rf"\s*{key}\s*=", lines[number]):
            lines[number] = re.sub(r"(=\s*)(?:\[[^\]]*\]|[^\s#]+)", rf"\g<1>{value}", lines[number], count=1)
            return "".join(lines)
        if re.match(r"\s*[^#\s]", lines[number]):
            last = number
    if not lines[last].endswith("\n"):
        lines[last] += "\n"
    lines.insert(last + 1, f"{key} = {value}\n")
    return "".join(lines)


def _quoted(size: str) -> str:
    return rf"[\"']?{re.escape(size)}[\"']?"
