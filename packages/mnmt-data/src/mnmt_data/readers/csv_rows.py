"""Rows of CSV text, of which a broken one costs no more than it must."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from mnmt_data.readers.lines import Line
from mnmt_data.readers.reader import BadLine


class Row(NamedTuple):
    """A row of a CSV file; a cell between quotes may have several lines."""

    number: int
    """The number of its first line, from 1."""

    line: str
    """That line."""

    cells: list[str]

    wrong: str = ""
    """What is wrong with it, if it cannot be read."""


class CsvRows:
    """Iterates over the rows of lines of text.

    A row that cannot be read ends with its first line, and reading goes on with the next: a quote that
    nothing closes would else take all that follows for one cell. Blank lines are passed over.
    """

    def __init__(self, lines: Iterator[Line]) -> None:
        self._lines = _Source(lines)
        self._rows = csv.reader(self._lines, strict=True)

    def __iter__(self) -> Iterator[Row | BadLine | None]:
        """Yield rows; in place of one with a line that is no text that line, with one too long None."""
        source = self._lines
        while True:
            source.start_row()
            try:
                cells = next(self._rows)
            except StopIteration:
                return
            except csv.Error as error:
                source.put_back()
                yield source.others[0] if source.others else self._broken(error)
            else:
                if source.others:
                    yield source.others[0]
                elif cells:
                    yield Row(*source.first, cells)

    def _broken(self, error: csv.Error) -> Row:
        return Row(*self._lines.first, [], f"not CSV ({error}); mend the quotes of this row")


class _Source:
    """Gives lines to Python's reader of CSV, and remembers those of the row that it reads."""

    def __init__(self, lines: Iterator[Line]) -> None:
        self.taken: list[tuple[int, Line]] = []
        self.others: list[BadLine | None] = []
        """Those of the row's lines that are no text or too long."""
        self._again: deque[tuple[int, Line]] = deque()
        self._lines = enumerate(lines, 1)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        numbered = self._again.popleft() if self._again else next(self._lines)
        self.taken.append(numbered)
        line = numbered[1]
        if isinstance(line, str):
            return line.replace("\r", " ") + "\n"
        self.others.append(line)
        return "\n"

    @property
    def first(self) -> tuple[int, str]:
        """The number and the text of the row's first line."""
        number, line = self.taken[0]
        return number, line if isinstance(line, str) else ""

    def start_row(self) -> None:
        """Forget the lines of the row before."""
        self.taken.clear()
        self.others.clear()

    def put_back(self) -> None:
        """Give the lines after the first once more."""
        self._again.extendleft(reversed(self.taken[1:]))
        del self.taken[1:]
        self.others = [line for _, line in self.taken if not isinstance(line, str)]
