"""Find the columns of a table that hold the two sides of a task, by name or number; never by a guess."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from mnmt_data.errors import DataError
from mnmt_data.readers.language_codes import best_tags, is_reversed, languages
from mnmt_data.readers.reader import EXCERPT, LONGEST_SENTENCE, BadLine, Reader

NAMED_SIDES = (("src", "tgt"), ("source", "target"))
STRUCT = "translation"
Place = tuple[str, ...]
"""The name of a column, and of one of its fields if it is a struct."""

T = TypeVar("T")


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
        if (place := place_of(self.column, names)) is not None:
            return place
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
                bad.setdefault(row, BadLine(row=row, what=what, text=str(cell)[:EXCERPT]))
        return values


@dataclass(frozen=True)
class Table:
    """Fields of readers of tables."""

    path: Path
    """The file."""

    task: str
    """The language pair."""

    scores: tuple[ScoreColumn, ...] = ()
    """Scores to read."""

    columns: tuple[tuple[str, int | str], ...] = ()
    """Names that the study gives to columns, each with the number, from 1, or the table's own name."""

    is_numbered: ClassVar[bool] = True
    """Whether its columns have an order."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that are read."""
        return (self.path,)

    def is_named(self, pattern: str) -> bool:
        """Return whether a key of `[data.columns]`, in which `*` stands for anything, is its name."""
        return self.path.name == pattern or fnmatchcase(self.path.name, pattern)

    def renamed(self, names: Sequence[str]) -> list[str]:
        """Return the names of the columns, with those that the study gives.

        Raises:
            ValueError: If the study names a column that is not there.
        """
        labels = ["" if name in dict(self.columns) else name for name in names]
        for name, column in self.columns:
            if isinstance(column, int) and not self.is_numbered:
                raise ValueError(f"[data.columns] must name a key for {name}, but has the number {column}")
            if (place := place_of(column, names)) is None:
                listed = ", ".join(names) or "none"
                raise ValueError(f"no column {column} among {listed}; mend [data.columns]")
            labels[place] = name
        return labels

    def sides(self, names: Sequence[str]) -> tuple[int, int] | None:
        """Return the places of the columns of source and target, from 0; None if no names say them.

        In order of preference: two columns named by the language codes; `src` and `tgt`; `source` and
        `target`. The last two are in the direction of the file's name, else in the task's.

        Raises:
            DataError: If several columns serve one side.
            ValueError: If the study names a column that is not there.
        """
        labels = self.renamed(names)
        sides = best_tags(tuple(labels), self.task, str(self.path)) or self._by_role(labels)
        if sides and (double := [side for side in sides if labels.count(side) > 1]):
            raise DataError(f"{self.path}: has several columns {double[0]}; keep one of them.")
        return (labels.index(sides[0]), labels.index(sides[1])) if sides else None

    def places(self, names: Sequence[str], fields: Sequence[str] = ()) -> tuple[Place, Place] | None:
        """Return the columns of the sides by name, or the fields of the struct `translation`.

        Args:
            names: The columns.
            fields: The fields of the column `translation`, if there is one; codes name them.

        Raises:
            DataError, ValueError: As `sides`.
        """
        if sides := self.sides(names):
            return (names[sides[0]],), (names[sides[1]],)
        tags = best_tags(tuple(fields), self.task, str(self.path))
        return ((STRUCT, tags[0]), (STRUCT, tags[1])) if tags else None

    def _by_role(self, names: Sequence[str]) -> tuple[str, str] | None:
        exact = {name.strip().lower(): name for name in names}
        for src, tgt in NAMED_SIDES:
            if src in exact and tgt in exact:
                return self.in_order(exact[src], exact[tgt])
        return None

    def in_order(self, first: T, second: T) -> tuple[T, T]:
        """Return source and target, given them in the direction of the file's name, else in the task's."""
        return (second, first) if is_reversed(self.path.name, self.task) else (first, second)

    def no_sides(self, names: Sequence[str], fields: Sequence[str] = ()) -> str:
        """Return the message about a table whose columns have only these names."""
        listed = ", ".join([*names, *(f"{STRUCT}.{field}" for field in fields)]) or "none"
        src, tgt = languages(self.task)
        example = self.toml(f'{src} = "..."', f'{tgt} = "..."')
        what = f"no columns for {self.task} among {listed}"
        return f"{what}; name two after the languages, or src and tgt, or write {example}"

    def toml(self, first: str, second: str) -> str:
        """Return the line of a study that names two columns."""
        return (
            f"columns.{json.dumps(self.path.name, ensure_ascii=False)} = {{ {first}, {second} }} under [data]"
        )


def with_columns(reader: Reader, columns: Mapping[str, Mapping[str, int | str]]) -> Reader:
    """Return a reader with the names that a study gives to columns, if it is of a table that it names.

    Args:
        reader: The reader.
        columns: `[data.columns]`; of several keys that name a table the longest counts.
    """
    if not isinstance(reader, Table):
        return reader
    key = max(filter(reader.is_named, columns), key=lambda key: (len(key), key), default=None)
    return reader if key is None else replace(reader, columns=tuple(columns[key].items()))


def place_of(column: int | str, names: Sequence[str]) -> int | None:
    """Return the place, from 0, of a column that is given by number, from 1, or name."""
    if isinstance(column, int):
        return column - 1 if 1 <= column <= len(names) else None
    return names.index(column) if column in names else None


def sentence_of(value: str | None) -> str:
    """Return a cell as a sentence on one line; empty if it is null or longer than `LONGEST_SENTENCE`."""
    if value is None or len(value) > LONGEST_SENTENCE:
        return ""
    return value.replace("\n", " ") if "\n" in value else value
