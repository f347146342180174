"""Tables of text, and the format of numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

UNKNOWN = "–"


@dataclass(frozen=True, kw_only=True)
class TextTable:
    """A titled table of text."""

    title: str
    """The heading."""

    note: str
    """A sentence below the heading."""

    header: tuple[str, ...]
    """The heading of each column."""

    rows: tuple[tuple[str, ...], ...]
    """The cells of each row."""

    prose: bool = False
    """Whether its cells hold sentences."""


def format_number(value: float, digits: int) -> str:
    """Return a number with `digits` significant digits, or a dash."""
    return UNKNOWN if not math.isfinite(value) else f"{value:#.{digits}g}".rstrip(".")


def format_percent(value: float, *, sign: bool = False) -> str:
    """Return a share as a percentage, or a dash."""
    return UNKNOWN if not math.isfinite(value) else f"{value:{'+' if sign else ''}.1%}"


def format_interval(lower: float, upper: float, digits: int) -> str:
    """Return an interval."""
    return f"{format_number(lower, digits)} to {format_number(upper, digits)}"


def format_duration(seconds: float) -> str:
    """Return a time as `45 s`, `12 min` or `3.2 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
