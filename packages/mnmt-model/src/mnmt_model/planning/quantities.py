"""Human-readable numbers, and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

PREFIXES = (
    (1e24, "Y"),
    (1e21, "Z"),
    (1e18, "E"),
    (1e15, "P"),
    (1e12, "T"),
    (1e9, "G"),
    (1e6, "M"),
    (1e3, "k"),
)
DURATIONS = ((2 * 86_400, 86_400, "days"), (2 * 3600, 3600, "h"), (120, 60, "min"))


def short(number: float) -> str:
    """Format a number of parameters with three digits: 1.02B, 18.9M, 64K."""
    for unit, letter in ((1e9, "B"), (1e6, "M"), (1e3, "K")):
        if number >= unit:
            return f"{_three_digits(number / unit)}{letter}"
    return f"{number:,.0f}"


def si(number: float) -> str:
    """Format a number with three digits and an SI prefix: 6.12 G."""
    for unit, letter in PREFIXES:
        if number >= unit:
            return f"{_three_digits(number / unit)} {letter}"
    return f"{number:,.0f}  "


def duration(seconds: float) -> str:
    """Format a duration: 45 s, 12 min, 3.5 h, 21 days."""
    for least, unit, name in DURATIONS:
        if seconds >= least:
            return f"{_two_digits(seconds / unit)} {name}"
    return f"{_two_digits(seconds)} s" if seconds >= 1 else "< 1 s"


def data_size(size: int) -> str:
    """Format a number of bytes: 1.38 GiB, 12.0 MiB."""
    for unit, name in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= unit:
            return f"{_three_digits(size / unit)} {name}"
    return f"{size} B"


def table(rows: Sequence[Sequence[str]], *, left: int = 1) -> Iterator[str]:
    """Yield rows with aligned columns: the first `left` to the left, the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def _three_digits(number: float) -> str:
    return f"{number:.0f}" if number >= 99.95 else f"{number:.1f}" if number >= 9.995 else f"{number:.2f}"


def _two_digits(number: float) -> str:
    return f"{number:.0f}" if number >= 9.95 else f"{number:.1f}"
