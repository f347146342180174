"""Segments read: each file is parsed once, and its arrays are then mapped into memory and let go of at will.

A mapping keeps no file open, so a process that reads thousands of segments needs no more descriptors than
one that reads a single one. What a file holds and where is remembered, so that it is mapped again in some
microseconds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mnmt_data.errors import DataError
from mnmt_data.store.ragged import Ragged
from mnmt_data.store.segments import INFO, TOKEN_TYPES, SegmentInfo


@dataclass(frozen=True, kw_only=True, eq=False)
class Segment:
    """Some sentence pairs of a shard, as views into a mapped file, which is let go of with the last of them."""

    src: Ragged
    tgt: Ragged

    def __len__(self) -> int:
        return len(self.src)


@dataclass(frozen=True, kw_only=True)
class SegmentFile:
    """A segment on disk: its counts, and the places of its arrays."""

    path: Path
    info: SegmentInfo
    """Counts of its pairs and tokens."""

    size: int
    """Bytes of the file."""

    modified: int
    """When it was written, in nanoseconds."""

    src: _RaggedPlace
    tgt: _RaggedPlace

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read the counts and places of a segment; of its tokens none is read.

        Raises:
            DataError: If the file is missing, truncated or not a segment.
        """
        try:
            status = path.stat()
            whole = _map(path)
            reader = pa.ipc.open_file(whole)
            batch = _read_batch(reader)
            src, tgt = (_RaggedPlace.of(batch.column(side), whole) for side in ("src", "tgt"))
            info = SegmentInfo(**json.loads((reader.schema.metadata or {})[INFO]))
        except (OSError, KeyError, ValueError, TypeError, pa.ArrowException) as error:
            raise _unreadable(path, error) from error
        return cls(
            path=path, info=info, size=status.st_size, modified=status.st_mtime_ns, src=src, tgt=tgt
        )

    def map(self) -> Segment:
        """Map the segment into memory.

        Raises:
            DataError: If the file is not there any more, or was written again since it was opened.
        """
        try:
            status = self.path.stat()
            if (status.st_size, status.st_mtime_ns) != (self.size, self.modified):
                raise DataError(f"{self.path}: was written again while it was read; start again.")
            whole = _map(self.path)
            return Segment(src=self.src.view(whole), tgt=self.tgt.view(whole))
        except (OSError, ValueError, pa.ArrowException) as error:
            raise _unreadable(self.path, error) from error


@dataclass(frozen=True, kw_only=True)
class _Place:
    """The place of an array in a file."""

    start: int
    """Bytes before it."""

    count: int
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, array: NDArray[Any], whole: pa.Buffer) -> Self:
        """Return the place of an array that is a view of a mapped file."""
        start = array.ctypes.data - whole.address if array.size else 0
        if not 0 <= start <= whole.size - array.nbytes:
            raise ValueError("its arrays are compressed")
        return cls(start=start, count=array.size, dtype=array.dtype)

    def view(self, whole: pa.Buffer) -> NDArray[Any]:
        return np.frombuffer(whole, dtype=self.dtype, count=self.count, offset=self.start)


@dataclass(frozen=True, kw_only=True)
class _RaggedPlace:
    """The places of the values and the offsets of one side."""

    values: _Place
    offsets: _Place

    @classmethod
    def of(cls, column: pa.Array, whole: pa.Buffer) -> Self:
        """Return the places of a column of token ids in a mapped file."""
        if column.type not in TOKEN_TYPES:
            raise ValueError(f"its columns are {column.type}, not large_list<uint16> or large_list<int32>")
        arrays = (column.values, column.offsets)
        rows = Ragged(*(array.to_numpy(zero_copy_only=True) for array in arrays))
        offsets = rows.offsets if len(rows) else rows.offsets[:0]
        return cls(values=_Place.of(rows.values, whole), offsets=_Place.of(offsets, whole))

    def view(self, whole: pa.Buffer) -> Ragged:
        """Return the rows, as views of the mapped file."""
        offsets = self.offsets.view(whole) if self.offsets.count else np.zeros(1, dtype=np.int64)
        return Ragged(self.values.view(whole), offsets)


def _map(path: Path) -> pa.Buffer:
    """Map a file; it is let go of with the last view of the buffer."""
    with pa.memory_map(str(path)) as file:
        return file.read_buffer()


def _read_batch(reader: pa.RecordBatchFileReader) -> pa.RecordBatch:
    if reader.num_record_batches != 1:
        raise ValueError(f"it holds {reader.num_record_batches} record batches, not 1")
    batch = reader.get_batch(0)
    batch.validate()
    return batch


def _unreadable(path: Path, error: Exception) -> DataError:
    if isinstance(error, FileNotFoundError):
        return DataError(f"{path}: no such segment of a token shard; prepare it again.")
    reason = str(error).partition("\n")[0]
    return DataError(f"{path}: not a readable token shard ({reason}); prepare it again.")
