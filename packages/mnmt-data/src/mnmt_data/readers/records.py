"""Sentence pairs as records of text: lines of TSV, rows of CSV, and JSON objects, one a line."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from mnmt_data.errors import DataError
from mnmt_data.readers.byte_sources import File
from mnmt_data.readers.columns import STRUCT, Place, ScoreColumn, Table, sentence_of
from mnmt_data.readers.headers import Layout, counted, layout_of
from mnmt_data.readers.lines import Line, Lines
from mnmt_data.readers.reader import EXCERPT, BadLine, Block, Choice, Record, blocks_of, every_block

_HEAD = 20
"""Lines by which the columns of a table without a header are judged."""


Row = tuple[int, str | list[str] | BadLine | None]
"""A row and the number of its first line, from 1: its line or its cells; see `Line` for others."""


_REMEDIES = {"\t": "put one tab between columns, and none into a sentence", ",": "quote cells with commas"}
"""{separator of cells: what to do about a row that is longer or shorter than the first}."""


@dataclass(frozen=True)
class TsvPairs(Table):
    """Reads a TSV file: the columns that its header or the study names, or the only two. Quotes are text."""

    def blocks(self, *, skip_bad: bool = False, choice: Choice = every_block) -> Iterator[Block]:
        """Yield blocks of pairs: every line except a header and empty lines at the end.

        Args:
            skip_bad: Whether to list lines that are not UTF-8, or have more or fewer columns than the first,
                in the blocks instead of raising.
            choice: Selects the blocks to read.

        Raises:
            DataError: If the file is missing, broken or not UTF-8, its columns for the task are unknown, or
                a line has more or fewer columns than the first.
        """
        lines = enumerate(Lines(File(self.path), skip_bad=skip_bad).each(), 1)
        yield from _blocks_of_rows(self, _without_empty_end(lines), "\t", skip_bad=skip_bad, choice=choice)


@dataclass(frozen=True)
class CsvPairs(Table):
    """Reads a CSV file: the columns that its header or the study names."""

    def blocks(self, *, skip_bad: bool = False, choice: Choice = every_block) -> Iterator[Block]:
        """Yield blocks of pairs; a cell between quotes may have commas and several lines.

        Args:
            skip_bad: Whether to list rows that are not UTF-8, or have more or fewer columns than the first,
                in the blocks instead of raising.
            choice: Selects the blocks to read.

        Raises:
            DataError: If the file is missing, broken or not UTF-8, its columns for the task are unknown,
                quotes are wrong, or a row has more or fewer columns than the first.
        """
        rows = _CsvRows(Lines(File(self.path), skip_bad=skip_bad).each(), self.path)
        yield from _blocks_of_rows(self, iter(rows), ",", skip_bad=skip_bad, choice=choice)


def _blocks_of_rows(
    table: Table, rows: Iterator[Row], separator: str, *, skip_bad: bool, choice: Choice
) -> Iterator[Block]:
    """Yield blocks of rows; the first readable one tells where source and target are."""
    head: list[Row] = []
    parse: Callable[[Row], Record] = _unreadable
    for row in rows:
        if isinstance(row[1], str | list):
            following = list(islice(rows, _HEAD - 1))
            layout = _layout(table, row, following, separator)
            parse = partial(_record_of, table, separator, layout)
            head += following if layout.has_header else [row, *following]
            break
        head.append(row)
    names = [score.name for score in table.scores]
    yield from blocks_of(chain(head, rows), parse=parse, scores=names, skip_bad=skip_bad, choice=choice)


def _unreadable(row: Row) -> Record:
    return row[1] if isinstance(row[1], BadLine) else ("", "")


def _cells(row: str | list[str], separator: str) -> list[str]:
    return row.split(separator) if isinstance(row, str) else [sentence_of(cell) for cell in row]


def _layout(table: Table, first: Row, others: list[Row], separator: str) -> Layout:
    rows = (row[1] for row in (first, *others))
    cells, *following = (_cells(row, separator) for row in rows if isinstance(row, str | list))
    try:
        return layout_of(table, cells, following, needs_header=separator == ",")
    except ValueError as error:
        raise DataError(f"{table.path}:{first[0]}: {error}.") from None


def _record_of(table: Table, separator: str, layout: Layout, row: Row) -> Record:
    """Return the pair in a row, or its report if it is bad."""
    number, content = row
    if content is None or isinstance(content, BadLine):
        return _unreadable(row)
    cells = _cells(content, separator)
    try:
        if len(cells) == layout.width:
            scores = [cells[place] for place in layout.scores]
            return _record(cells[layout.src], cells[layout.tgt], table.scores, scores)
        first = "header" if layout.has_header else "first line"
        what = f"has {counted(cells)}, but the {first} has {layout.width}; {_REMEDIES[separator]}"
    except ValueError as error:
        what = str(error)
    return _bad(table.path, number, what, separator.join(cells))


class _CsvRows:
    """Iterates over the CSV rows of lines of text; skips blank lines."""

    def __init__(self, lines: Iterator[Line], path: Path) -> None:
        self._lines = lines
        self._path = path
        self._others: list[BadLine | None] = []

    def __iter__(self) -> Iterator[Row]:
        """Yield rows; for a row with a bad line yield the bad line, with an overlong line None.

        Raises:
            DataError: If the quotes of a row are wrong, so that its end is unknown.
        """
        rows = csv.reader(self._texts(), strict=True)
        first = 1
        try:
            for cells in rows:
                if self._others:
                    yield first, self._others[0]
                elif cells:
                    yield first, cells
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
class JsonPairs(Table):
    """Reads JSON lines: an object a line, whose keys are as `Table.places` expects them."""

    is_numbered = False

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
        src, tgt, *scores = _places_once(self, names, inner)
        cells = [table[place[0]] for place in scores]
        return _record(_text_at(table, src), _text_at(table, tgt), self.scores, cells)


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


@lru_cache(maxsize=256)  # nearly all objects of a file have the same keys
def _places_once(table: Table, keys: tuple[str, ...], fields: tuple[str, ...]) -> list[Place]:
    """Return the places of source, target and scores in an object.

    Raises:
        ValueError: If one is missing.
    """
    if (sides := table.places(keys, fields)) is None:
        raise ValueError(table.no_sides(keys, fields))
    labels = table.renamed(keys)
    if missing := [score for score in table.scores if score.column not in labels]:
        raise ValueError(missing[0].not_among(keys))
    return [*sides, *((keys[labels.index(str(score.column))],) for score in table.scores)]


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
    return BadLine(row=number - 1, what=f"{path}:{number}: {what}.", text=text[:EXCERPT])
