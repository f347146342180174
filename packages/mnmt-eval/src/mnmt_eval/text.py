"""Text files: a sentence a line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from mnmt_eval.errors import EvalError


def read_lines(path: Path) -> list[str]:
    r"""The lines of a text file, which end with \n or \r\n and nothing else.

    Raises:
        EvalError: Naming the line that is not UTF-8.
        OSError: If the file cannot be read.
    """
    lines = path.read_bytes().split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [decode_line(line, name=str(path), number=number) for number, line in enumerate(lines, start=1)]


def decode_line(line: bytes, *, name: str, number: int) -> str:
    """The text of a line without its end; a byte order mark is left out of the first.

    Args:
        line: As it is in the file.
        name: What messages call the file.
        number: Of the line, from 1.

    Raises:
        EvalError: If it is not UTF-8.
    """
    content = line.removesuffix(b"\n").removesuffix(b"\r")
    try:
        return content.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError:
        raise EvalError(f"{name}:{number}: not valid UTF-8; convert the text to UTF-8.") from None


def digest(*texts: Sequence[str]) -> str:
    """A checksum of texts, each some lines."""
    return hashlib.sha256(json.dumps([list(lines) for lines in texts]).encode()).hexdigest()
