"""Sentence pairs as records of text: lines of TSV, rows of CSV, and JSON objects, one a line."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from mnmt_data.errors import DataError
from mnmt_data.readers.byte_sources import File
from mnmt_data.readers.columns import (
    STRUCT,
    OneTable,
    Place,
    ScoreColumn,
    find_sides,
    names_columns,
    no_sides,
    sentence_of,
)
from mnmt_data.readers.language_codes import is_reversed
from mnmt_data.readers.lines import Line, Lines
from mnmt_data.readers.reader import BadLine, Block, Choice, Record, blocks_of, every_block

_EXCERPT = 200
"""Characters of a bad line in its report."""


@dataclass(frozen=True)
class TsvPairs(OneTable):
    """Reads a TSV file: its first two columns, or the columns that a header names.

    The first line is a header if it names two columns after the languages of the task, or `src` and `tgt`, or
    `source` and `target`. Without a header, the columns are swapped if the file's name gives the opposite
    direction.
    """

    def blocks(self, *, skip_bad: bool = False, choice: Choice = every_block) -> Iterator[Block]:
        """Yield blocks of pairs: every line except a header and empty lines at the end.

        Args:
            skip_bad: Whether to list lines without a tab or not UTF-8 in the blocks instead of raising.
            choice: Selects the blocks to read.

        Raises:
            DataError: If the file is missing, broken or not UTF-8, its header names no columns for the task,
                or a line has too few columns.
        """
        src, tgt = (1, 0) if is_reversed(self.path.name, self.task) else (0, 1)
        what = "has no tab; give source, tab, target on every line"
        lines = _without_empty_end(enumerate(Lines(File(self.path), skip_bad=skip_bad).each(), 1))
        head = list(islice(lines, 1))
        names = [name for _, line in head if isinstance(line, str) for name in line.split("\t")]
        if sides := find_sides(self.path, self.task, names):
            src, tgt = (names.index(place[0]) for place in sides)
            what = f"must have the {len(names)} columns of the header"
            places = [score.place(self.path, names) for score in self.scores]
            head = []
        elif names_columns(names, self.task):
            remedy = "without a header, put src, a tab and tgt above the pairs"
            what = no_sides(self.task, names).rstrip(".")
            raise DataError(f"{self.path}:1: seems to be a header with {what}; {remedy}.")
        else:
            places = self._numbered(names)
        width = max(src, tgt, *places) + 1

        def parse(row: tuple[int, Line]) -> Record:
            number, line = row
            if not isinstance(line, str):
                return line or ("", "")
            columns = line.split("\t")
            if len(columns) < width:
                return _bad(self.path, number, what, line)
            try:
                return _record(columns[src], columns[tgt], self.scores, [columns[place] for place in places])
            except ValueError as error:
                return _bad(self.path, number, str(error), line)

        rows, names = chain(head, lines), [score.name for score in self.scores]
        yield from blocks_of(rows, parse=parse, scores=names, skip_bad=skip_bad, choice=choice)

    def _numbered(self, cells: list[str]) -> list[int]:
        """Return the columns of the scores in a file without a header, given the cells of its first line."""
        if not cells:
            return [0] * len(self.scores)
        numbers = [str(number) for number in range(1, len(cells) + 1)]
        return [score.place(self.path, numbers) for score in self.scores]


class _Row(NamedTuple):
    """A row of a CSV file; a cell between quotes may have several lines."""

    number: int
    """The number of its first line, from 1."""

    cells: list[str]


class _CsvRows:
    """Iterates over the CSV rows of lines of text; skips blank lines."""

    def __init__(self, lines: Iterator[Line], path: Path) -> None:
        self._lines = lines
        self._path = path
        self._others: list[BadLine | None] = []

    def __iter__(self) -> Iterator[_Row | BadLine | None]:
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
                    yield _Row(first, cells)
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


@dataclass(frozen=True)
class CsvPairs(OneTable):
    """Reads a CSV file, whose header names columns as `find_sides` expects them."""

    def blocks(self, *, skip_bad: bool = False, choice: Choice = every_block) -> Iterator[Block]:
        """Yield blocks of pairs; a cell between quotes may have commas and several lines.

        Args:
            skip_bad: Whether to list rows of a wrong length or not UTF-8 in the blocks instead of raising.
            choice: Selects the blocks to read.

        Raises:
            DataError: If the file is missing, broken or not UTF-8, has no columns for the task or wrong
                quotes, or a row is not as long as the header.
        """
        names = [score.name for score in self.scores]
        yield from blocks_of(self._records(skip_bad), scores=names, skip_bad=skip_bad, choice=choice)

    def _records(self, skip_bad: bool) -> Iterator[Record]:
        rows = iter(_CsvRows(Lines(File(self.path), skip_bad=skip_bad).each(), self.path))
        header = list(islice(rows, 1))
        width, src, tgt, places = self._columns(*header) if header else (0, 0, 0, [])
        for row in rows:
            if not isinstance(row, _Row):
                yield row or ("", "")
            elif len(row.cells) != width:
                counts = f"has {len(row.cells)} columns, but the header has {width}"
                yield _bad(self.path, row.number, f"{counts}; quote cells with commas", ",".join(row.cells))
            else:
                try:
                    sides = sentence_of(row.cells[src]), sentence_of(row.cells[tgt])
                    yield _record(*sides, self.scores, [row.cells[place] for place in places])
                except ValueError as error:
                    yield _bad(self.path, row.number, str(error), ",".join(row.cells))

    def _columns(self, header: _Row | BadLine | None) -> tuple[int, int, int, list[int]]:
        """Return the number of columns, and the columns of source, target and scores."""
        if not isinstance(header, _Row):
            what = f"{self.path}:1: the header cannot be read"
            raise DataError(header.what if isinstance(header, BadLine) else f"{what}; name the columns.")
        names = header.cells
        if (sides := find_sides(self.path, self.task, names)) is None:
            raise DataError(f"{self.path}:{header.number}: the header has {no_sides(self.task, names)}")
        src, tgt = (names.index(place[0]) for place in sides)
        return len(names), src, tgt, [score.place(self.path, names) for score in self.scores]


@dataclass(frozen=True)
class JsonPairs(OneTable):
    """Reads JSON lines: an object a line, with keys as `find_sides` expects them."""

    def blocks(self, *, skip_bad: bool = False, choice: Choice = every_block) -> Iterator[Block]:
        """Yield blocks of pairs; a null is an empty sentence, and blank lines are skipped.

        Args:
            skip_bad: Whether to list bad lines in the blocks instead of raising.
            choice: Selects the blocks to read.

        Raises:
            DataError: If the file is missing, broken or not UTF-8, or a line is not an object with text in
                the languages of the task.
        """
        lines = (
            row for row in enumerate(Lines(File(self.path), skip_bad=skip_bad).each(), 1) if row[1] != ""
        )
        names = [score.name for score in self.scores]
        yield from blocks_of(lines, parse=self._record, scores=names, skip_bad=skip_bad, choice=choice)

    def _record(self, row: tuple[int, Line]) -> Record:
        number, line = row
        if not isinstance(line, str):
            return line or ("", "")
        try:
            return self._pair(json.loads(line))
        except json.JSONDecodeError as error:
            return _bad(self.path, number, f"not JSON ({error.msg}); give an object on every line", line)
        except (ValueError, RecursionError) as error:
            return _bad(self.path, number, str(error), line)

    def _pair(self, table: Any) -> Record:
        if not isinstance(table, dict):
            raise ValueError("is no JSON object; give one on every line")
        fields = table.get(STRUCT)
        names, inner = tuple(table), tuple(fields) if isinstance(fields, dict) else ()
        sides = _find_sides_once(self.path, self.task, names, inner)
        if sides is None:
            raise ValueError(no_sides(self.task, names, inner).rstrip("."))
        if missing := [score for score in self.scores if score.column not in table]:
            raise ValueError(missing[0].not_among(names))
        cells = [table[score.column] for score in self.scores]
        return _record(_text_at(table, sides[0]), _text_at(table, sides[1]), self.scores, cells)


def _without_empty_end(rows: Iterator[tuple[int, Line]]) -> Iterator[tuple[int, Line]]:
    """Yield numbered lines without empty lines at the end."""
    empty: list[tuple[int, Line]] = []
    for row in rows:
        if row[1] == "":
            empty.append(row)
            continue
        yield from empty
        empty.clear()
        yield row


_find_sides_once = lru_cache(maxsize=256)(find_sides)  # nearly all objects of a file have the same keys


def _text_at(table: dict[str, Any], place: Place) -> str:
    value: Any = table
    for name in place:
        value = value[name]
    if not isinstance(value, str | None):
        raise ValueError(f"`{'.'.join(place)}` must be a string, but is {json.dumps(value)[:40]}")
    text = sentence_of(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"`{'.'.join(place)}` holds half a surrogate pair; write the file anew") from None
    return text


def _record(src: str, tgt: str, scores: tuple[ScoreColumn, ...], cells: list[Any]) -> Record:
    """Return a pair with its scores.

    Raises:
        ValueError: If the cell of a score is not a number.
    """
    if not scores:
        return src, tgt
    return src, tgt, tuple(score.value(cell) for score, cell in zip(scores, cells, strict=True))


def _bad(path: Path, number: int, what: str, text: str) -> BadLine:
    return BadLine(row=number - 1, what=f"{path}:{number}: {what}.", text=text[:_EXCERPT])
