"""Token shards: the sentence pairs of one task and split as token ids, on disk and mapped into memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from mnmt_data.errors import DataError

_TOKEN_TYPES = (pa.large_list(pa.uint16()), pa.large_list(pa.int32()))


@dataclass(frozen=True, eq=False)
class Ragged:
    """Rows of different lengths in one array.

    Raises:
        ValueError: if the offsets do not cut `values` into rows.
    """

    values: NDArray[np.integer]
    """(total,) the rows, one after the other."""

    offsets: NDArray[np.int64]
    """(rows + 1,) row i is values[offsets[i]:offsets[i + 1]]."""

    def __post_init__(self) -> None:
        offsets, total = self.offsets, len(self.values)
        if not (len(offsets) and offsets[0] >= 0 and offsets[-1] <= total and (np.diff(offsets) >= 0).all()):
            raise ValueError(f"`offsets` must rise from 0 to at most the number of `values` ({total}).")

    @classmethod
    def from_rows(cls, rows: Sequence[NDArray[np.integer]]) -> Self:
        """Puts rows one after the other."""
        lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        values = np.concatenate(rows) if rows else np.empty(0, dtype=np.uint16)
        return cls(values, offsets_of(lengths))

    @classmethod
    def concatenate(cls, parts: Sequence[Ragged]) -> Self:
        """The rows of all parts, in order; at least one part."""
        lengths = np.concatenate([part.lengths for part in parts])
        values = np.concatenate([part.values[part.offsets[0] : part.offsets[-1]] for part in parts])
        return cls(values, offsets_of(lengths))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> NDArray[np.integer]:
        """One row, as a view."""
        if not -len(self) <= row < len(self):
            raise IndexError(f"`row` must be one of {len(self)} rows, but is {row}.")
        row %= len(self)
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(rows,) the length of each row."""
        return np.diff(self.offsets)

    def take(self, rows: NDArray[np.int64]) -> Ragged:
        """The given rows, copied one after the other."""
        starts, lengths = self.offsets[rows], self.offsets[rows + 1] - self.offsets[rows]
        offsets = offsets_of(lengths)
        sources = np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Ragged(self.values[sources], offsets)

    def padded(self, rows: NDArray[np.int64], *, pad: int = 0) -> NDArray[np.int64]:
        """The given rows, filled up with `pad` to the longest: (len(rows), length of the longest)."""
        lengths = self.offsets[rows + 1] - self.offsets[rows]
        width = int(lengths.max(initial=0))
        table = np.full((len(rows), width), pad, dtype=np.int64)
        table[np.arange(width) < lengths[:, None]] = self.take(rows).values
        return table


def offsets_of(lengths: ArrayLike) -> NDArray[np.int64]:
    """(rows + 1,) where rows of these lengths start and end when laid one after the other."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


@dataclass(frozen=True, kw_only=True, eq=False)
class Shard:
    """The sentence pairs of one task and split."""

    path: Path
    src: Ragged
    tgt: Ragged

    def __len__(self) -> int:
        return len(self.src)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Maps a shard into memory: token ids are read when they are used, and never copied.

        Raises:
            DataError: if the file is missing, truncated or not a shard.
        """
        if not path.is_file():
            raise DataError(f"{path}: no such token shard; `mnmt-data prepare` writes them.")
        try:
            batch = _read_batch(path)
            return cls(path=path, src=_as_ragged(batch.column("src")), tgt=_as_ragged(batch.column("tgt")))
        except (OSError, KeyError, ValueError) as error:
            reason = str(error).partition("\n")[0]
            raise DataError(f"{path}: not a readable token shard ({reason}); prepare it again.") from error


def write_shard(path: Path, src: Ragged, tgt: Ragged) -> None:
    """Writes an Arrow IPC file with one record batch, columns `src` and `tgt` of large_list<uint16|int32>.

    The file appears complete or not at all, also if the machine stops meanwhile.

    Raises:
        ValueError: if the two sides differ in number of rows, or an id is negative or above 2**31 - 1.
    """
    if len(src) != len(tgt):
        raise ValueError(f"`tgt` must have as many rows as `src` ({len(src)}), but has {len(tgt)}.")
    batch = pa.RecordBatch.from_arrays([_as_arrow(src), _as_arrow(tgt)], names=["src", "tgt"])
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            with pa.ipc.new_file(file, batch.schema) as writer:
                writer.write_batch(batch)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _as_arrow(rows: Ragged) -> pa.LargeListArray:
    low, high = int(rows.values.min(initial=0)), int(rows.values.max(initial=0))
    if low < 0 or high >= 2**31:
        raise ValueError(f"`values` must be token ids from 0 to 2**31 - 1, but reach from {low} to {high}.")
    values = rows.values.astype(np.uint16 if high < 2**16 else np.int32)
    return pa.LargeListArray.from_arrays(pa.array(rows.offsets), pa.array(values))


def _read_batch(path: Path) -> pa.RecordBatch:
    reader = pa.ipc.open_file(pa.memory_map(str(path)))
    if reader.num_record_batches != 1:
        raise ValueError(f"it holds {reader.num_record_batches} record batches, not 1")
    batch = reader.get_batch(0)
    batch.validate()
    return batch


def _as_ragged(column: pa.Array) -> Ragged:
    if column.type not in _TOKEN_TYPES:
        raise ValueError(f"its columns are {column.type}, not large_list<uint16> or large_list<int32>")
    return Ragged(column.values.to_numpy(zero_copy_only=True), column.offsets.to_numpy(zero_copy_only=True))
