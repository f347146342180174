"""Sentence pairs from the columns of Parquet files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mnmt_data.errors import DataError
from mnmt_data.readers.byte_sources import PARQUET, check_is_file, unreadable
from mnmt_data.readers.columns import STRUCT, Place, Table, sentence_of
from mnmt_data.readers.reader import BLOCK_PAIRS, EXCERPT, BadLine, Block, Choice, every_block


@dataclass(frozen=True)
class ParquetPairs(Table):
    """Reads a Parquet file batch by batch, in the columns of `Table.places`."""

    def blocks(self, *, skip_bad: bool = False, choice: Choice = every_block) -> Iterator[Block]:
        """Yield blocks of pairs; a null is an empty sentence.

        Args:
            skip_bad: Whether to list rows that are not UTF-8 in the blocks instead of raising.
            choice: Selects the blocks to read.

        Raises:
            DataError: If the file is missing or damaged, columns for the task are missing or hold no strings,
                or a row is not UTF-8.
        """
        check_is_file(self.path)
        try:
            with pq.ParquetFile(self.path) as file:
                yield from self._blocks(file, skip_bad, choice)
        except (pa.ArrowException, OSError) as error:
            raise DataError(unreadable(self.path, PARQUET, error)) from None

    def _blocks(self, file: Any, skip_bad: bool, choice: Choice) -> Iterator[Block]:
        schema, first = file.schema_arrow, 0
        places = self._columns(schema, _fields(schema, file))
        maps = [field.name for field in schema if pa.types.is_map(field.type)]
        names = [place[0] if place[0] in maps else ".".join(place) for place in places]
        rows = file.iter_batches(batch_size=BLOCK_PAIRS, columns=names)
        for columns in _whole_blocks([_column_at(batch, place) for place in places] for batch in rows):
            if choice(first // BLOCK_PAIRS):
                yield self._block(columns, first, skip_bad)
            else:
                yield Block(src=[], tgt=[], first=first)
            first += len(columns[0])

    def _columns(self, schema: pa.Schema, fields: list[str]) -> list[Place]:
        names = schema.names
        try:
            sides = self.places(names, fields)
            labels = self.renamed(names)
        except ValueError as error:
            raise DataError(f"{self.path}: {error}.") from None
        if sides is None:
            raise DataError(f"{self.path}: {self.no_sides(names, fields)}.")
        for place in sides:
            kind = _type_at(schema, place)
            if not _is_text(kind):
                raise DataError(
                    f"{self.path}: the column {'.'.join(place)} holds {kind}; it must hold strings."
                )
        return [*sides, *((names[score.place(self.path, labels)],) for score in self.scores)]

    def _block(self, columns: list[pa.Array], first: int, skip_bad: bool) -> Block:
        bad: dict[int, BadLine] = {}
        src, tgt = (self._values(column, first, bad, skip_bad) for column in columns[:2])
        cells = zip(self.scores, columns[2:], strict=True)
        bad_scores = bad if skip_bad else None
        scores = {
            score.name: score.values(column.to_pylist(), first, f"{self.path}: row ", bad_scores)
            for score, column in cells
        }
        return Block(
            src=list(map(sentence_of, src)),
            tgt=list(map(sentence_of, tgt)),
            first=first,
            scores=scores,
            bad=tuple(bad[row] for row in sorted(bad)),
        )

    def _values(
        self, column: pa.Array, first: int, bad: dict[int, BadLine], skip_bad: bool
    ) -> list[str | None]:
        try:
            values: list[str | None] = column.to_pylist()
        except UnicodeDecodeError:
            values = [self._value(value, row, bad, skip_bad) for row, value in enumerate(column, first)]
        return values

    def _value(self, value: pa.Scalar, row: int, bad: dict[int, BadLine], skip_bad: bool) -> str | None:
        try:
            text: str | None = value.as_py()
        except UnicodeDecodeError as error:
            what = f"{self.path}: row {row + 1}: not valid UTF-8; write the file anew."
            if not skip_bad:
                raise DataError(what) from None
            excerpt = bytes(error.object)[:EXCERPT].decode("utf-8", errors="backslashreplace")
            bad[row] = BadLine(row=row, what=what, text=excerpt)
            return ""
        return text


def _fields(schema: pa.Schema, file: Any) -> list[str]:
    """Return the fields of the column `STRUCT`, or if it is a map, the keys in its first rows."""
    place = schema.get_field_index(STRUCT)
    kind = schema.field(place).type if place >= 0 else pa.null()
    if pa.types.is_map(kind):
        first = islice(file.iter_batches(batch_size=BLOCK_PAIRS, columns=[STRUCT]), 1)
        return sorted({str(key) for batch in first for key in batch.column(STRUCT).keys.to_pylist()})
    return [field.name for field in kind] if pa.types.is_struct(kind) else []


def _type_at(schema: pa.Schema, place: Place) -> Any:
    kind = schema.field(place[0]).type
    if len(place) < 2:
        return kind
    return kind.item_type if pa.types.is_map(kind) else kind.field(place[1]).type


def _is_text(kind: Any) -> bool:
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return any(
        test(value) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    )


def _column_at(batch: pa.RecordBatch, place: Place) -> pa.Array:
    column = batch.column(place[0])
    if pa.types.is_map(column.type):
        return pc.map_lookup(column, pa.scalar(place[1], column.type.key_type), "first")
    return pc.struct_field(column, place[1]) if len(place) > 1 else column


def _whole_blocks(batches: Iterable[list[pa.Array]]) -> Iterator[list[pa.Array]]:
    """Yield the rows of batches of any size in blocks of `BLOCK_PAIRS`."""
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
