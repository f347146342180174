"""Find the columns of a table that hold the two sides of a task, by name."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mnmt_data.errors import DataError
from mnmt_data.readers.language_codes import best_tag, is_reversed, languages, spellings
from mnmt_data.readers.reader import LONGEST_SENTENCE, BadLine

NAMED_SIDES = (("src", "tgt"), ("source", "target"))
STRUCT = "translation"
COLUMN_WORDS = frozenset({"src", "tgt", "source", "target", "sentence", "translation", "score", "id"})
"""Words in names of columns; they tell a header from sentences of one word."""

Place = tuple[str, ...]
"""The name of a column, and of one of its fields if it is a struct."""


@dataclass(frozen=True, kw_only=True)
class ScoreColumn:
    """A score of each pair from another tool, and its column in a table."""

    name: str
    """Its name in the study."""

    column: str | int
    """Name or number, from 1, of its column."""

    def place(self, path: Path, names: Sequence[str]) -> int:
        """Return the index of its column in a table with these columns, from 0.

        Raises:
            DataError: If the table has no such column; the message names the file.
        """
        if isinstance(self.column, int) and 1 <= self.column <= len(names):
            return self.column - 1
        if self.column in names:
            return names.index(str(self.column))
        remedy = f"or put a number a line into {path.name}.{self.name}"
        raise DataError(f"{path}: {self.not_among(names)}, {remedy}.")

    def not_among(self, names: Sequence[str]) -> str:
        """Return the message about a table or an object with only these columns or keys."""
        listed = ", ".join(names) or "none"
        return f"no column {self.column} among {listed}, for [data.scores] `{self.name}`; set its `column`"

    def value(self, cell: object) -> float:
        """Return the number in a cell or line.

        Raises:
            ValueError: If it is not a finite number.
        """
        try:
            number = math.nan if isinstance(cell, bool) else float(cell)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise ValueError(f"`{self.name}` must be a number, but is {cell!r}")
        return number

    def values(
        self, cells: Sequence[object], first: int, where: str, bad: dict[int, BadLine] | None
    ) -> NDArray[np.float32]:
        """Return the numbers in the cells of consecutive pairs, (pairs,), nan for cells without one.

        Args:
            cells: The cells, or lines.
            first: Number of the first pair, from 0.
            where: Start of messages, before the number of the pair from 1.
            bad: {pair: its bad line}, to add cells without a number to; None to raise for them.

        Raises:
            DataError: If a cell holds no number, and `bad` is None.
        """
        values = np.full(len(cells), math.nan, dtype=np.float32)
        for place, cell in enumerate(cells):
            try:
                values[place] = self.value(cell)
            except ValueError as error:
                row, what = first + place, f"{where}{first + place + 1}: {error}."
                if bad is None:
                    raise DataError(what) from None
                bad.setdefault(row, BadLine(row=row, what=what, text=str(cell)))
        return values


@dataclass(frozen=True)
class OneTable:
    """Fields of readers of a table in one file."""

    path: Path
    """The file."""

    task: str
    """The language pair."""

    scores: tuple[ScoreColumn, ...] = ()
    """Scores to read."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """The one file."""
        return (self.path,)


def find_sides(
    path: Path, task: str, names: Sequence[str], fields: Sequence[str] = ()
) -> tuple[Place, Place] | None:
    """Return the places of source and target, or None.

    In order of preference: two columns named by the language codes; two such `fields` of the column
    `translation`; `src` and `tgt`; `source` and `target`. The last two are in the direction of the file's
    name, else in the task's.

    Args:
        path: The file.
        task: The language pair.
        names: The columns.
        fields: The fields of the column `translation`, if there is one.
    """
    for options, parents in ((names, ()), (fields, (STRUCT,))):
        src, tgt = (best_tag(tuple(options), code) for code in languages(task))
        if src is not None and tgt is not None:
            return (*parents, src), (*parents, tgt)
    exact = {name.strip().lower(): name for name in names}
    for src, tgt in NAMED_SIDES:
        if src in exact and tgt in exact:
            sides = (exact[src],), (exact[tgt],)
            return (sides[1], sides[0]) if is_reversed(path.name, task) else sides
    return None


def no_sides(task: str, names: Sequence[str], fields: Sequence[str] = ()) -> str:
    """Return the message about a table without sides for `find_sides`."""
    listed = ", ".join([*names, *(f"{STRUCT}.{field}" for field in fields)]) or "none"
    remedy = "name two after the languages, or src and tgt, or source and target"
    return f"no columns for {task} among {listed}; {remedy}."


def names_columns(cells: Sequence[str], task: str) -> bool:
    """Return whether cells seem to be a header: only words, at least two of them typical of columns.

    Args:
        cells: The first line of a table.
        task: The language pair; its codes are typical of columns.
    """
    if not all(re.fullmatch(r"[\w.:-]*", cell.strip()) for cell in cells):
        return False
    known = COLUMN_WORDS | {spelling.lower() for code in languages(task) for spelling in spellings(code)}
    return sum(not known.isdisjoint(re.split(r"[\W\d_]+", cell.lower())) for cell in cells) > 1


def sentence_of(value: str | None) -> str:
    """Return a cell as a sentence on one line; empty if it is null or longer than `LONGEST_SENTENCE`."""
    if value is None or len(value) > LONGEST_SENTENCE:
        return ""
    return value.replace("\n", " ") if "\n" in value else value
