"""Tables that commands print."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def align(columns: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table of equally long columns, each as wide as its widest cell."""
    widths = [max(map(len, column)) for column in columns]
    for row in zip(*columns, strict=True):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
