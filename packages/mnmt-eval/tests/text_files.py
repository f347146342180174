"""Text files that tests write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def write(path: Path, lines: Sequence[str]) -> Path:
    """Write a line each, in a folder that is made if need be; return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path
