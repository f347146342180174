"""Sentence pairs as records of text: lines of TSV, rows of CSV, and JSON objects, one a line."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mnmt_data.errors import DataError
from mnmt_data.readers.byte_sources import File
from mnmt_data.readers.columns import STRUCT, Place, find_sides, no_sides, sentence_of
from mnmt_data.readers.language_codes import is_reversed
from mnmt_data.readers.lines import Lines
from mnmt_data.readers.reader import BadLine, Block, blocks_of

_EXCERPT = 200
"""Characters of a bad line that are shown."""

Record = tuple[str, str] | BadLine
"""Source and target, or what is wrong."""


@dataclass(frozen=True)
class TsvPairs:
    """Reads a TSV file: two columns, or those that a header names.

    The first line is a header if it names two columns after the languages of the task, or `src` and `tgt`, or
    `source` and `target`. Without one, the columns trade places where the file's name gives the opposite
    direction.
    """

    path: Path
    task: str

    @property
    def paths(self) -> tuple[Path, ...]:
        """The one file."""
        return (self.path,)

    def blocks(self, *, skip_bad: bool = False) -> Iterator[Block]:
        """Yield blocks of pairs; every line but a header is a pair.

        Args:
            skip_bad: Whether lines without a tab or not UTF-8 are listed in the blocks and not refused.

        Raises:
            DataError: If the file is missing, broken or not UTF-8, or a line has too few columns.
        """
        yield from blocks_of(self._records(skip_bad), skip_bad=skip_bad)

    def _records(self, skip_bad: bool) -> Iterator[Record]:
        src, tgt = (1, 0) if is_reversed(self.path.name, self.task) else (0, 1)
        what = "has no tab; give source, tab, target on every line"
        for number, line in enumerate(Lines(File(self.path), overlong="\t", skip_bad=skip_bad).each(), 1):
            if isinstance(line, BadLine):
                yield line
                continue
            columns = line.split("\t")
            if number == 1 and (sides := find_sides(self.path, self.task, columns)):
                src, tgt = (columns.index(place[0]) for place in sides)
                what = f"must have the {len(columns)} columns of the header"
            elif max(src, tgt) < len(columns):
                yield columns[src], columns[tgt]
            else:
                yield _bad(self.path, number, what, line)


@dataclass(frozen=True)
class CsvPairs:
    """Reads a CSV file, whose header names the columns as those of a Parquet file are named."""

    path: Path
    task: str

    @property
    def paths(self) -> tuple[Path, ...]:
        """The one file."""
        return (self.path,)

    def blocks(self, *, skip_bad: bool = False) -> Iterator[Block]:
        """Yield blocks of pairs; a cell between quotes may have commas and several lines.

        Args:
            skip_bad: Whether rows that cannot be read are listed in the blocks and not refused.

        Raises:
            DataError: If the file is missing, broken or not UTF-8, has no columns for the task, or a row is
                not as long as the header.
        """
        yield from blocks_of(self._records(skip_bad), skip_bad=skip_bad)

    def _records(self, skip_bad: bool) -> Iterator[Record]:
        rows = self._rows(skip_bad)
        header = next(rows, None)
        if header is None:
            return
        names = header[1]
        sides = None if isinstance(names, BadLine) else find_sides(self.path, self.task, names)
        if sides is None or isinstance(names, BadLine):
            wrong = no_sides(self.task, [] if isinstance(names, BadLine) else names)
            raise DataError(f"{self.path}:1: the header has {wrong}")
        src, tgt = (names.index(place[0]) for place in sides)
        for number, row in rows:
            if isinstance(row, BadLine):
                yield row
            elif len(row) == len(names):
                yield sentence_of(row[src]), sentence_of(row[tgt])
            else:
                what = f"has {len(row)} columns, but the header has {len(names)}"
                yield _bad(self.path, number, f"{what}; quote cells with commas", ",".join(row))

    def _rows(self, skip_bad: bool) -> Iterator[tuple[int, list[str] | BadLine]]:
        """Yield (number of the last line, cells) of each row, or what is wrong with it."""
        bad: list[BadLine] = []
        rows = csv.reader(_with_newlines(Lines(File(self.path), skip_bad=skip_bad), bad), strict=True)
        while True:
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                yield rows.line_num, _bad(self.path, rows.line_num, f"not CSV ({error}); mend the row", "")
                continue
            if bad and bad[0].row < rows.line_num:
                yield rows.line_num, bad.pop(0)
            elif row:
                yield rows.line_num, row


@dataclass(frozen=True)
class JsonPairs:
    """Reads JSON lines: an object a line, whose keys are those of the columns of a Parquet file."""

    path: Path
    task: str

    @property
    def paths(self) -> tuple[Path, ...]:
        """The one file."""
        return (self.path,)

    def blocks(self, *, skip_bad: bool = False) -> Iterator[Block]:
        """Yield blocks of pairs; a null is an empty sentence.

        Args:
            skip_bad: Whether lines that cannot be read are listed in the blocks and not refused.

        Raises:
            DataError: If the file is missing, broken or not UTF-8, or a line is not an object with text in
                the languages of the task.
        """
        yield from blocks_of(self._records(skip_bad), skip_bad=skip_bad)

    def _records(self, skip_bad: bool) -> Iterator[Record]:
        for number, line in enumerate(Lines(File(self.path), skip_bad=skip_bad).each(), 1):
            if isinstance(line, BadLine):
                yield line
                continue
            try:
                yield self._pair(json.loads(line))
            except json.JSONDecodeError as error:
                yield _bad(self.path, number, f"not JSON ({error.msg}); give an object on every line", line)
            except (ValueError, RecursionError) as error:
                yield _bad(self.path, number, str(error), line)

    def _pair(self, table: Any) -> tuple[str, str]:
        if not isinstance(table, dict):
            raise ValueError("is no JSON object; give one on every line")
        fields = table.get(STRUCT)
        inner = list(fields) if isinstance(fields, dict) else []
        sides = find_sides(self.path, self.task, list(table), inner)
        if sides is None:
            raise ValueError(no_sides(self.task, list(table), inner).rstrip("."))
        return _text_at(table, sides[0]), _text_at(table, sides[1])


def _text_at(table: dict[str, Any], place: Place) -> str:
    value: Any = table
    for name in place:
        value = value[name]
    if not isinstance(value, str | None):
        raise ValueError(f"`{'.'.join(place)}` must be a string, but is {json.dumps(value)[:40]}")
    text = sentence_of(value)
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError(f"`{'.'.join(place)}` holds half a surrogate pair; write the file anew")
    return text


def _with_newlines(lines: Lines, bad: list[BadLine]) -> Iterator[str]:
    """Yield lines with a newline; those that cannot be read are empty and put into `bad`."""
    for line in lines.each():
        if isinstance(line, BadLine):
            bad.append(line)
        yield "\n" if isinstance(line, BadLine) else line.replace("\r", " ") + "\n"


def _bad(path: Path, number: int, what: str, text: str) -> BadLine:
    return BadLine(row=number - 1, what=f"{path}:{number}: {what}.", text=text[:_EXCERPT])
