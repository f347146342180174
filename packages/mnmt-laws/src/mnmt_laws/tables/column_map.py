"""Map the columns of a file to those of a run table, and make wide tables long."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from mnmt_laws.errors import ArgumentError, TableError
from mnmt_laws.tables.columns import KINDS, closest, listed
from mnmt_laws.tables.metrics import metric_of_column
from mnmt_laws.tables.mixture import format_mixture
from mnmt_laws.tables.numbers import parse_count

STARRED = {"mixture": "source", "value": "task"}
BETWEEN = " - "
"""What stands between run and metric in the columns of a panel; there a second `*` stands for the task."""

_SCALED = re.compile(r"(.+)\*\s*(\d*\.?\d+(?:e[+-]?\d+)?)", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class ColumnMap:
    """The names that a file gives to the columns of a run table."""

    columns: Mapping[str, str] = field(default_factory=dict)
    """The file's column by the run table's, `{"size": "params"}`, perhaps times a factor, `{"tokens":
    "tokens*1e9"}`, or a number that all rows have, `{"size": "1e6"}`. One `*` in that of `mixture` stands for
    a source, each with a column of weights; one `*` in that of `value` for a task, each with one of values.
    """

    def __post_init__(self) -> None:
        for name in self.columns:
            if name not in KINDS:
                meant = closest(name, KINDS)
                hint = f" (is `{meant}` meant?)" if meant else ""
                raise ArgumentError(
                    f"`columns` must name columns of a run table{hint}, but names {name!r}; they are "
                    f"{', '.join(KINDS)}."
                )
            pattern = self.file_column(name)
            stars = pattern.count("*")
            if stars > (name in STARRED) + (name == "value" and BETWEEN in pattern):
                most = "one `*`" if name in STARRED else "no `*` but before a factor"
                raise ArgumentError(f"`columns` must have {most} in that of `{name}`, but has {pattern!r}.")
            if name == "value" and stars and "task" in self.columns:
                raise ArgumentError(f"`columns` must leave `task` out: {pattern!r} names the tasks.")

    @property
    def metric(self) -> str:
        """The metric in the name of the values' column, as `metric_of_column` reads it."""
        return metric_of_column(self.file_column("value"))

    @property
    def scaled(self) -> frozenset[str]:
        """Columns of the run table with a factor, perhaps 1, that settles their unit."""
        return frozenset(name for name, text in self.columns.items() if self.file_column(name) != text)

    def file_column(self, name: str) -> str:
        """Return the file's name, or its pattern, of a run table's column."""
        return self._split(name)[0]

    def _split(self, name: str) -> tuple[str, float]:
        """Return the file's name of a column and the factor of its numbers: `tokens*1e9`."""
        text = self.columns.get(name, name)
        scaled = None if KINDS[name] == "text" or name in STARRED else _SCALED.fullmatch(text)
        return (text, 1.0) if scaled is None else (scaled[1].strip(), float(scaled[2]))

    @property
    def _file_columns(self) -> dict[str, str]:
        return {name: self.file_column(name) for name in self.columns}

    def starred(self, name: str, names: Sequence[str]) -> dict[str, str]:
        """Return the file's columns that a pattern matches, by the text in place of its star."""
        return starred_columns(self.file_column(name), names)

    def kinds(self, names: Sequence[str]) -> dict[str, str]:
        """Return the kind of each column that is read from a file; text where it is read as both."""
        gathered = {"mixture": "share", "value": "number"}
        kinds = {name: KINDS[name] for name in names if name in KINDS and name not in self.columns}
        for target, column in self._file_columns.items():
            if "*" in column:
                kinds |= dict.fromkeys(self.starred(target, names).values(), gathered[target])
            elif column in names and kinds.get(column) != "text":
                kinds[column] = KINDS[target]
        return kinds

    def names(self, names: Sequence[str]) -> list[str]:
        """Return the columns of the run table that a file yields, then the file's unread columns."""
        read = self.kinds(names)
        present = [name for name in names if name in KINDS and name not in self.columns]
        starred = ["task"] if "*" in self.file_column("value") and "task" not in present else []
        unread = [name for name in names if name not in read and name not in KINDS]
        return [*present, *self.columns, *starred, *unread]

    def require(self, names: Sequence[str], source: str) -> None:
        """Check that the file has every column that is named.

        Raises:
            TableError: If one is absent.
        """
        for target, column in self._file_columns.items():
            if column in names or self.starred(target, names) or self._constant(target) is not None:
                continue
            meant = closest(column.replace("*", ""), names)
            hint = f" (is `{meant}` meant?)" if meant else ""
            like = "like " if "*" in column else ""
            raise TableError(
                f"{source} row 1: no column {like}`{column}`{hint} for `{target}`; the table has "
                f"{listed(names)}."
            )

    def apply(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a file's columns as those of a run table, with a row for each task of a wide one.

        Args:
            frame: Columns of the file that are read, numbers as numbers, and `row`.
        """
        if not self.columns:
            return frame
        names = list(frame.columns)
        table = frame[
            [name for name in names if (name in KINDS or name == "row") and name not in self.columns]
        ]
        plain = {
            name: self._read(name, frame) for name, column in self._file_columns.items() if "*" not in column
        }
        table = table.assign(**plain)
        if sources := self.starred("mixture", names):
            table = table.assign(mixture=_gather_mixtures(frame, sources))
        if columns := self.starred("value", names):
            table = _melt_values(table, frame, columns)
        return table

    def _read(self, name: str, frame: pd.DataFrame) -> pd.Series | float | None:
        """Return a column of the file, times its factor if it has one, or the number in its place."""
        column, factor = self._split(name)
        if column not in frame:
            return self._constant(name)
        return frame[column] if factor == 1 else frame[column] * factor

    def _constant(self, name: str) -> float | None:
        """Return the number that stands in place of a column's name."""
        try:
            return None if KINDS[name] == "text" else parse_count(self.columns[name])
        except ValueError:
            return None


def starred_columns(pattern: str, names: Iterable[str]) -> dict[str, str]:
    """Return the names that a pattern matches, by the text in place of its star; none without a star."""
    head, star, tail = pattern.partition("*")
    least = len(head) + len(tail) + 1
    return {
        name[len(head) : len(name) - len(tail)]: name
        for name in (names if star else ())
        if name.startswith(head) and name.endswith(tail) and len(name) >= least
    }


def _gather_mixtures(frame: pd.DataFrame, sources: Mapping[str, str]) -> pd.Series:
    """Return the mixture of each row as text, without weights of 0; empty where all fields are empty."""
    weights = frame[[*sources.values()]].to_numpy(float)
    empty = np.isnan(weights).all(axis=1)
    distinct, codes = np.unique(np.nan_to_num(weights), axis=0, return_inverse=True)
    texts = [
        format_mixture({name: weight for name, weight in zip(sources, row, strict=True) if weight})
        for row in distinct
    ]
    return pd.Series(np.where(empty, "", np.array(texts, dtype=object)[codes.ravel()]), index=frame.index)


def _melt_values(table: pd.DataFrame, frame: pd.DataFrame, columns: Mapping[str, str]) -> pd.DataFrame:
    """Return a row for each measured task, in the order of the file's rows."""
    flat = frame[[*columns.values()]].to_numpy(float).ravel()
    long = table.loc[table.index.repeat(len(columns))]
    long = long.assign(task=[*columns] * len(table), value=flat)
    rows: pd.DataFrame = long[~np.isnan(flat)].reset_index(drop=True)
    return rows
