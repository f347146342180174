"""Parquet tables of sentence pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mnmt_data.errors import DataError
from mnmt_data.readers.byte_sources import check_is_file, one_line
from mnmt_data.readers.language_codes import best_tag, is_reversed, languages, origin_code
from mnmt_data.readers.reader import BLOCK_PAIRS, LONGEST_SENTENCE, Block

ORIGIN = "origin"
NAMED_SIDES = (("src", "tgt"), ("source", "target"))
STRUCT = "translation"


@dataclass(frozen=True)
class ParquetPairs:
    """Reads a Parquet file batch by batch.

    The columns are, in this order of preference: two named by the language codes; the fields so named of a
    struct `translation`; `src` and `tgt`; `source` and `target`. The latter two are in the direction that the
    file's name gives, else in the task's. A column `origin` says which language a pair was written in.
    """

    path: Path
    task: str

    @property
    def paths(self) -> tuple[Path, ...]:
        """The one file."""
        return (self.path,)

    def blocks(self) -> Iterator[Block]:
        """Yield blocks of pairs; a null is an empty sentence.

        Raises:
            DataError: If the file is missing or damaged, or has no columns for the task.
        """
        check_is_file(self.path)
        first = 0
        try:
            with pq.ParquetFile(self.path) as table:
                for columns in _whole_blocks(self._columns(table)):
                    yield self._block(columns, first)
                    first += len(columns[0])
        except (pa.ArrowException, OSError) as error:
            what = f"cannot be read as Parquet ({one_line(error)})"
            raise DataError(f"{self.path}: {what}; it is truncated or damaged, fetch it again.") from None

    def _columns(self, table: pq.ParquetFile) -> Iterator[list[pa.Array]]:
        """Yield source, target and, if there is one, origin of each batch of rows."""
        paths = self._places(table.schema_arrow)
        names = [".".join(path) for path in paths]
        for batch in table.iter_batches(batch_size=BLOCK_PAIRS, columns=names):
            yield [_column_at(batch, path) for path in paths]

    def _places(self, schema: pa.Schema) -> list[tuple[str, ...]]:
        places = [*self._sides(schema), *([(ORIGIN,)] if ORIGIN in schema.names else [])]
        for place in places:
            kind = _type_at(schema, place)
            if not _is_text(kind):
                raise DataError(
                    f"{self.path}: the column {'.'.join(place)} holds {kind}; it must hold strings."
                )
        return places

    def _sides(self, schema: pa.Schema) -> tuple[tuple[str, ...], tuple[str, ...]]:
        tops, fields = schema.names, _fields(schema)
        for names, parents in ((tops, ()), (fields, (STRUCT,))):
            src, tgt = (best_tag(tuple(names), code) for code in languages(self.task))
            if src is not None and tgt is not None:
                return (*parents, src), (*parents, tgt)
        for src, tgt in NAMED_SIDES:
            if src in tops and tgt in tops:
                return ((tgt,), (src,)) if is_reversed(self.path.name, self.task) else ((src,), (tgt,))
        names = ", ".join([*tops, *(f"{STRUCT}.{field}" for field in fields)])
        remedy = "name two after the languages, or src and tgt, or source and target"
        raise DataError(f"{self.path}: no columns for {self.task} among {names}; {remedy}.")

    def _block(self, columns: list[pa.Array], first: int) -> Block:
        src, tgt = (self._sentences(column, first) for column in columns[:2])
        origins = [origin_code(tag, self.task) for column in columns[2:] for tag in column.to_pylist()]
        return Block(src=src, tgt=tgt, first=first, origins=origins if len(columns) > 2 else None)

    def _sentences(self, column: pa.Array, first: int) -> list[str]:
        try:
            values = column.to_pylist()
        except UnicodeDecodeError:
            row = first + 1 + _first_undecodable(column)
            raise DataError(f"{self.path}: row {row}: not valid UTF-8; write the file anew.") from None
        return [_sentence(value) for value in values]


def _sentence(value: str | None) -> str:
    if value is None or len(value) > LONGEST_SENTENCE:
        return ""
    return value.replace("\n", " ") if "\n" in value else value


def _first_undecodable(column: pa.Array) -> int:
    for row, value in enumerate(column):
        try:
            value.as_py()
        except UnicodeDecodeError:
            return row
    raise AssertionError("every value decodes")


def _fields(schema: pa.Schema) -> list[str]:
    place = schema.get_field_index(STRUCT)
    kind = schema.field(place).type if place >= 0 else None
    return [field.name for field in kind] if kind is not None and pa.types.is_struct(kind) else []


def _type_at(schema: pa.Schema, place: tuple[str, ...]) -> Any:
    kind = schema.field(place[0]).type
    return kind.field(place[1]).type if len(place) > 1 else kind


def _is_text(kind: Any) -> bool:
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return any(
        test(value) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    )


def _column_at(batch: pa.RecordBatch, place: tuple[str, ...]) -> pa.Array:
    column = batch.column(place[0])
    return pc.struct_field(column, place[1]) if len(place) > 1 else column


def _whole_blocks(batches: Iterable[list[pa.Array]]) -> Iterator[list[pa.Array]]:
    """Yield the rows of the batches, which end where row groups do, in blocks of `BLOCK_PAIRS`."""
    pending: list[list[pa.Array]] = []
    for batch in batches:
        pending.append(batch)
        while sum(len(columns[0]) for columns in pending) >= BLOCK_PAIRS:
            joined = [pa.concat_arrays(column) for column in zip(*pending, strict=True)]
            yield [column[:BLOCK_PAIRS] for column in joined]
            pending = [[column[BLOCK_PAIRS:] for column in joined]]
    if sum(len(columns[0]) for columns in pending):
        yield [pa.concat_arrays(column) for column in zip(*pending, strict=True)]
