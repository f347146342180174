"""Columns of text, aligned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def aligned(columns: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines with the cells of equally long columns, each column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in columns]
    for row in zip(*columns, strict=True):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
