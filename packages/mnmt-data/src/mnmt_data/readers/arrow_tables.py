"""Sentence pairs in the columns of Arrow tables: Parquet files, and data sets as Hugging Face saves them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mnmt_data.errors import DataError
from mnmt_data.readers.byte_sources import check_is_file, one_line
from mnmt_data.readers.columns import STRUCT, Place, ScoreColumn, find_sides, no_sides, sentence_of
from mnmt_data.readers.language_codes import origin_code
from mnmt_data.readers.reader import BLOCK_PAIRS, BadLine, Block, Choice, every_block

T = TypeVar("T")

ORIGIN = "origin"
_EXCERPT = 200
"""Bytes of a bad row that are shown."""

Batches = Callable[[list[str]], Iterable[pa.RecordBatch]]
"""Gives the rows of a table, in the columns with these names."""


@dataclass(frozen=True)
class ParquetPairs:
    """Reads a Parquet file batch by batch; `find_sides` says which columns.

    A column `origin` says which language a pair was written in.
    """

    path: Path
    task: str
    scores: tuple[ScoreColumn, ...] = ()
    """Scores to read."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """The one file."""
        return (self.path,)

    def blocks(self, *, skip_bad: bool = False, choice: Choice = every_block) -> Iterator[Block]:
        """Yield blocks of pairs; a null is an empty sentence.

        Args:
            skip_bad: Whether rows that are not UTF-8 are listed in the blocks and not refused.
            choice: Which blocks are wanted.

        Raises:
            DataError: If the file is missing or damaged, or has no columns for the task.
        """
        check_is_file(self.path)
        try:
            with pq.ParquetFile(self.path) as table:

                def batches(names: list[str]) -> Iterable[pa.RecordBatch]:
                    yield from table.iter_batches(batch_size=BLOCK_PAIRS, columns=names)

                schema = table.schema_arrow
                yield from TableBlocks(self.path, self.task, self.scores, schema, skip_bad, choice).of(
                    batches
                )
        except (pa.ArrowException, OSError) as error:
            raise DataError(_unreadable(self.path, "Parquet", error)) from None


@dataclass(frozen=True)
class DatasetPairs:
    """Reads a data set that Hugging Face's `save_to_disk` wrote, or that its library keeps: Arrow streams."""

    path: Path
    """The folder, or the name, for messages and for the direction of unnamed columns."""

    task: str
    paths: tuple[Path, ...]
    """The files, in order."""

    scores: tuple[ScoreColumn, ...] = ()
    """Scores to read."""

    def blocks(self, *, skip_bad: bool = False, choice: Choice = every_block) -> Iterator[Block]:
        """Yield blocks of pairs; a null is an empty sentence.

        Args:
            skip_bad: Whether rows that are not UTF-8 are listed in the blocks and not refused.
            choice: Which blocks are wanted.

        Raises:
            DataError: If a file is missing or damaged, or the data set has no columns for the task.
        """
        with _open_stream(self.paths[0]) as stream:
            schema = stream.schema
        blocks = TableBlocks(self.path, self.task, self.scores, schema, skip_bad, choice)
        yield from blocks.of(lambda names: (batch for path in self.paths for batch in _batches(path, schema)))


def _batches(path: Path, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    with _open_stream(path) as stream:
        if not stream.schema.equals(schema):
            raise DataError(f"{path}: has other columns than the first file of the data set; save it again.")
        yield from stream


@contextmanager
def _open_stream(path: Path) -> Iterator[Any]:
    check_is_file(path)
    try:
        with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as stream:
            yield stream
    except (pa.ArrowException, OSError) as error:
        raise DataError(_unreadable(path, "a data set", error)) from None


def open_dataset(folder: Path, task: str) -> DatasetPairs:
    """Open a folder that Hugging Face's `Dataset.save_to_disk` wrote.

    Raises:
        DataError: If it is no such folder, or holds several splits, which are then named.
    """
    if (splits := folder / "dataset_dict.json").is_file():
        names = ", ".join(_listed(splits, lambda table: map(str, table["splits"])))
        raise DataError(f"{folder}: holds the splits {names}; name one of these folders in it.")
    state = folder / "state.json"
    files = _listed(state, lambda table: (folder / file["filename"] for file in table["_data_files"]))
    return DatasetPairs(folder, task, tuple(files))


def is_dataset(folder: Path) -> bool:
    """Return whether a folder is one that `save_to_disk` wrote."""
    return any((folder / name).is_file() for name in ("state.json", "dataset_dict.json"))


@dataclass(frozen=True)
class TableBlocks:
    """Turns the rows of a table into blocks."""

    path: Path
    task: str
    scores: tuple[ScoreColumn, ...]
    schema: pa.Schema
    skip_bad: bool
    choice: Choice

    def of(self, batches: Batches) -> Iterator[Block]:
        """Yield blocks of the rows that `batches` gives.

        Raises:
            DataError: If there are no columns for the task, or these hold no strings, or a row is not UTF-8.
        """
        places, first = self._places(), 0
        rows = batches([".".join(place) for place in places])
        columns_of = ([_column_at(batch, place) for place in places] for batch in rows)
        for columns in _whole_blocks(columns_of):
            if self.choice(first // BLOCK_PAIRS):
                yield self._block(columns, first)
            else:
                yield Block(src=[], tgt=[], first=first)
            first += len(columns[0])

    def _places(self) -> list[Place]:
        names, fields = self.schema.names, _fields(self.schema)
        sides = find_sides(self.path, self.task, names, fields)
        if sides is None:
            raise DataError(f"{self.path}: {no_sides(self.task, names, fields)}")
        places = [*sides, *([(ORIGIN,)] if ORIGIN in names else [])]
        for place in places:
            if names.count(place[0]) > 1:
                raise DataError(f"{self.path}: has several columns {place[0]}; keep one of them.")
            kind = _type_at(self.schema, place)
            if not _is_text(kind):
                raise DataError(
                    f"{self.path}: the column {'.'.join(place)} holds {kind}; it must hold strings."
                )
        return places + [(names[score.place(self.path, names)],) for score in self.scores]

    def _block(self, columns: list[pa.Array], first: int) -> Block:
        bad: dict[int, BadLine] = {}
        texts = columns[: len(columns) - len(self.scores)]
        src, tgt, *origins = (self._values(column, first, bad) for column in texts)
        cells = zip(self.scores, columns[len(texts) :], strict=True)
        scores = {score.name: self._numbers(score, column, first, bad) for score, column in cells}
        return Block(
            src=list(map(sentence_of, src)),
            tgt=list(map(sentence_of, tgt)),
            first=first,
            origins=[origin_code(tag, self.task) for tag in origins[0]] if origins else None,
            scores=scores,
            bad=tuple(bad[row] for row in sorted(bad)),
        )

    def _numbers(
        self, score: ScoreColumn, column: pa.Array, first: int, bad: dict[int, BadLine]
    ) -> NDArray[np.float32]:
        values = np.full(len(column), np.nan, dtype=np.float32)
        for place, cell in enumerate(column.to_pylist()):
            try:
                values[place] = score.value(cell)
            except ValueError as error:
                row = first + place
                what = f"{self.path}: row {row + 1}: {error}."
                if not self.skip_bad:
                    raise DataError(what) from None
                bad.setdefault(row, BadLine(row=row, what=what, text=str(cell)))
        return values

    def _values(self, column: pa.Array, first: int, bad: dict[int, BadLine]) -> list[str | None]:
        try:
            values: list[str | None] = column.to_pylist()
        except UnicodeDecodeError:
            values = [self._value(value, row, bad) for row, value in enumerate(column, first)]
        return values

    def _value(self, value: pa.Scalar, row: int, bad: dict[int, BadLine]) -> str | None:
        try:
            text: str | None = value.as_py()
        except UnicodeDecodeError as error:
            what = f"{self.path}: row {row + 1}: not valid UTF-8; write the file anew."
            if not self.skip_bad:
                raise DataError(what) from None
            excerpt = bytes(error.object)[:_EXCERPT].decode("utf-8", errors="backslashreplace")
            bad[row] = BadLine(row=row, what=what, text=excerpt)
            return ""
        return text


def _listed(path: Path, entries: Callable[[Any], Iterable[T]]) -> list[T]:
    """Return what a file of a saved data set lists: something at least."""
    try:
        if listed := list(entries(json.loads(path.read_text(encoding="utf-8")))):
            return listed
    except (ValueError, TypeError, KeyError):
        pass
    raise DataError(f"{path}: does not describe a saved data set; save it again.")


def _unreadable(path: Path, kind: str, error: Exception) -> str:
    return (
        f"{path}: cannot be read as {kind} ({one_line(error)}); it is truncated or damaged, fetch it again."
    )


def _fields(schema: pa.Schema) -> list[str]:
    place = schema.get_field_index(STRUCT)
    kind = schema.field(place).type if place >= 0 else None
    return [field.name for field in kind] if kind is not None and pa.types.is_struct(kind) else []


def _type_at(schema: pa.Schema, place: Place) -> Any:
    kind = schema.field(place[0]).type
    return kind.field(place[1]).type if len(place) > 1 else kind


def _is_text(kind: Any) -> bool:
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return any(
        test(value) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    )


def _column_at(batch: pa.RecordBatch, place: Place) -> pa.Array:
    column = batch.column(place[0])
    return pc.struct_field(column, place[1]) if len(place) > 1 else column


def _whole_blocks(batches: Iterable[list[pa.Array]]) -> Iterator[list[pa.Array]]:
    """Yield the rows of the batches, however many each has, in blocks of `BLOCK_PAIRS`."""
    pending: list[list[pa.Array]] = []
    rows = 0
    for batch in batches:
        pending.append(batch)
        rows += len(batch[0])
        if rows >= BLOCK_PAIRS:
            joined = [pa.concat_arrays(column) for column in zip(*pending, strict=True)]
            whole = rows - rows % BLOCK_PAIRS
            for start in range(0, whole, BLOCK_PAIRS):
                yield [column.slice(start, BLOCK_PAIRS) for column in joined]
            pending, rows = [[column.slice(whole) for column in joined]], rows - whole
    if rows:
        yield [pa.concat_arrays(column) for column in zip(*pending, strict=True)]
