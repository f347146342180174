"""Lines of text files, and their checksums."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from mnmt_data.errors import folder_holds
from mnmt_eval.errors import EvalError


def read_lines(path: Path) -> list[str]:
    r"""Return the lines of a text file, which end with \n or \r\n and nothing else.

    Raises:
        EvalError: If there is no such file, or a line is not UTF-8; the message names the line.
        OSError: If the file cannot be read.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        raise EvalError(f"{path}: no such file; {folder_holds(path)}.") from None
    except IsADirectoryError:
        raise EvalError(f"{path}: must be a file, but is a folder.") from None
    if not lines[-1]:
        lines.pop()
    return [decode_line(line, name=str(path), number=number) for number, line in enumerate(lines, start=1)]


def read_text(path: Path) -> list[str]:
    """Return the sentences of a file, one a line.

    Raises:
        EvalError: If there is no such file, a line is not UTF-8, or the file is plainly a table, whose lines
            would be scored with all their columns.
        OSError: If the file cannot be read.
    """
    lines = read_lines(path)
    if lines and lines[0].startswith("{") and lines[0].endswith("}"):
        raise EvalError(f"{path}: holds JSON lines; write the texts of one key to a file, one a line.")
    if len(lines) > 1 and "\t" in lines[0] and len({line.count("\t") for line in lines}) == 1:
        raise EvalError(f"{path}: is a table; write one column to a file, as `cut -f2` does.")
    return lines


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


def join_lines(text: str) -> str:
    """Return a text with a space in place of each line break, so that it is one line of a file."""
    return text.replace("\n", " ").replace("\r", " ")


def checksum(*texts: Sequence[str]) -> str:
    """Return the SHA-256 of one or more texts, each a sequence of lines."""
    return hashlib.sha256(json.dumps([list(lines) for lines in texts]).encode()).hexdigest()
