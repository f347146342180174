"""Rows of CSV text, numbered by their first lines."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mnmt_data.errors import DataError
from mnmt_data.readers.lines import Line
from mnmt_data.readers.reader import BadLine


class Row(NamedTuple):
    """A row of a CSV file; a cell between quotes may have several lines."""

    number: int
    """The number of its first line, from 1."""

    cells: list[str]


class CsvRows:
    """Iterates over the CSV rows of lines of text; skips blank lines."""

    def __init__(self, lines: Iterator[Line], path: Path) -> None:
        self._lines = lines
        self._path = path
        self._others: list[BadLine | None] = []

    def __iter__(self) -> Iterator[Row | BadLine | None]:
        """Yield rows; for a row with a bad line yield the bad line, with an overlong line None.

        Raises:
            DataError: If the quotes of a row are wrong, so that its end is unknown.
        """
        rows = csv.reader(self._texts(), strict=True)
        first = 1
        try:
            for cells in rows:
                if self._others:
                    yield self._others[0]
                elif cells:
                    yield Row(first, cells)
                self._others.clear()
                first = rows.line_num + 1
        except csv.Error as error:
            raise DataError(
                f"{self._path}:{first}: not CSV ({error}); mend the quotes of this row."
            ) from None

    def _texts(self) -> Iterator[str]:
        for line in self._lines:
            if isinstance(line, str):
                yield line.replace("\r", " ") + "\n"
            else:
                self._others.append(line)
                yield "\n"
