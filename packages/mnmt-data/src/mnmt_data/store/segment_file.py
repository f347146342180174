"""Segments read: each file is parsed once, and its arrays are then mapped into memory and let go of at will.

Python keeps a file open as long as it is mapped. So at most `MOST_MAPPED` segments are mapped at once, those
of all shards of the process together. What a file holds and where is remembered, so that it is mapped again
in some microseconds, and consecutive rows are read without mapping it. Arrow's own mappings keep no file
open, but ask the system to read all of it.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mnmt_data.errors import DataError
from mnmt_data.store.ragged import Ragged
from mnmt_data.store.segments import BLOCK_ROWS, INFO, LENGTHS, TOKEN_TYPES, SegmentInfo

Rows = NDArray[np.int64]
Lengths = tuple[NDArray[np.integer], NDArray[np.integer]]
"""Source and target lengths, (rows,) each."""

MOST_MAPPED = 64
"""The most segments that are mapped at once in a process."""

_mapped: dict[SegmentFile, Segment] = {}
"""The mapped segments, the one used last at the end; with no lock, which a fork could leave locked."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Segment:
    """Some sentence pairs of a shard, as views into a file that stays mapped as long as there is one."""

    src: Ragged
    tgt: Ragged
    lengths: Lengths | None
    """Those of all rows, if the file has them in columns of their own."""

    def __len__(self) -> int:
        return len(self.src)

    def lengths_of(self, rows: Rows) -> Lengths:
        """Return the lengths of the given rows."""
        if self.lengths is None:
            return self.src.lengths_of(rows), self.tgt.lengths_of(rows)
        return self.lengths[0][rows], self.lengths[1][rows]

    def take(self, rows: Rows) -> tuple[Ragged, Ragged]:
        """Return the given rows, copied."""
        return self.src.take(rows), self.tgt.take(rows)


@dataclass(frozen=True, kw_only=True, eq=False)
class SegmentFile:
    """A segment on disk: its counts, and the places of its arrays."""

    path: Path
    info: SegmentInfo
    """Counts of its pairs and tokens."""

    size: int
    """Bytes of the file."""

    modified: int
    """When it was written, in nanoseconds."""

    block_rows: int
    """Rows that are drawn one after the other, where the whole shard was shuffled; else 1."""

    src: _RaggedPlace
    tgt: _RaggedPlace
    lengths: tuple[_Place, _Place] | None

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read the counts and places of a segment; of its tokens none is read.

        Raises:
            DataError: If the file is missing, truncated or not a segment.
        """
        try:
            status, mapping = _map(path, sparse=True)
            whole = pa.py_buffer(mapping)
            reader = pa.ipc.open_file(whole)
            batch = _read_batch(reader)
            src, tgt = (_RaggedPlace.of(batch.column(side), whole) for side in ("src", "tgt"))
            metadata = reader.schema.metadata or {}
            info, block_rows = SegmentInfo(**json.loads(metadata[INFO])), _block_rows(metadata)
            lengths = _length_places(batch, whole) if block_rows > 1 else None
        except (OSError, KeyError, ValueError, TypeError, pa.ArrowException) as error:
            raise _unreadable(path, error) from error
        stamp = {"size": status.st_size, "modified": status.st_mtime_ns}
        return cls(path=path, info=info, **stamp, block_rows=block_rows, src=src, tgt=tgt, lengths=lengths)

    def map(self, *, sparse: bool = False) -> Segment:
        """Map the segment into memory, unless it is; another one may be let go of for it.

        Args:
            sparse: Whether few rows are read, far apart; the system then reads no others ahead of them.

        Raises:
            DataError: If the file is not there any more, or was written again since it was opened.
        """
        segment = _mapped.pop(self, None)
        if segment is None:
            let_go(list(_mapped)[: max(0, len(_mapped) + 1 - MOST_MAPPED)])
            segment = self._map(sparse=sparse)
        _mapped[self] = segment
        return segment

    def _map(self, *, sparse: bool) -> Segment:
        try:
            status, mapping = _map(self.path, sparse=sparse)
            self._check(status)
            whole = pa.py_buffer(mapping)
            lengths = self.lengths and (self.lengths[0].view(whole), self.lengths[1].view(whole))
            return Segment(src=self.src.view(whole), tgt=self.tgt.view(whole), lengths=lengths)
        except (OSError, ValueError) as error:
            raise _unreadable(self.path, error) from error

    @contextmanager
    def descriptor(self) -> Iterator[int]:
        """Open the file to read some bytes of it, and no others ahead of them.

        Raises:
            DataError: If the file is not there any more, or was written again since it was opened.
        """
        try:
            with self.path.open("rb", buffering=0) as file:
                self._check(os.fstat(file.fileno()))
                if hasattr(os, "posix_fadvise"):
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
                yield file.fileno()
        except (OSError, ValueError) as error:
            raise _unreadable(self.path, error) from error

    def _check(self, status: os.stat_result) -> None:
        if (status.st_size, status.st_mtime_ns) != (self.size, self.modified):
            raise DataError(f"{self.path}: was written again while it was read; start again.")


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Consecutive rows of a segment, all of which are read where some of them are asked for."""

    file: SegmentFile
    start: int
    stop: int

    def lengths_of(self, rows: Rows) -> Lengths:
        """Read the lengths, and return those of the given rows of the segment."""
        with self.file.descriptor() as descriptor:
            if self.file.lengths is None:
                ends = self.stop + 1
                places = (self.file.src.offsets, self.file.tgt.offsets)
                src, tgt = (np.diff(place.read(descriptor, self.start, ends)) for place in places)
            else:
                src, tgt = (place.read(descriptor, self.start, self.stop) for place in self.file.lengths)
        return src[rows - self.start], tgt[rows - self.start]

    def take(self, rows: Rows) -> tuple[Ragged, Ragged]:
        """Read the token ids, and return those of the given rows of the segment."""
        with self.file.descriptor() as descriptor:
            places = (self.file.src, self.file.tgt)
            src, tgt = (place.read(descriptor, self.start, self.stop) for place in places)
        return src.take(rows - self.start), tgt.take(rows - self.start)


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
        if not self.count:
            return np.empty(0, dtype=self.dtype)
        return np.frombuffer(whole, dtype=self.dtype, count=self.count, offset=self.start)

    def read(self, descriptor: int, start: int, stop: int) -> NDArray[Any]:
        """Read some elements of the array."""
        width = self.dtype.itemsize
        data = os.pread(descriptor, width * (stop - start), self.start + width * start)
        return np.frombuffer(data, dtype=self.dtype, count=stop - start) if data else np.empty(0, self.dtype)


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

    def read(self, descriptor: int, start: int, stop: int) -> Ragged:
        """Read some consecutive rows."""
        if start == stop:
            return Ragged(np.empty(0, dtype=self.values.dtype), np.zeros(1, dtype=np.int64))
        offsets = self.offsets.read(descriptor, start, stop + 1)
        values = self.values.read(descriptor, int(offsets[0]), int(offsets[-1]))
        return Ragged(values, offsets - offsets[0])


def let_go(files: Iterable[SegmentFile]) -> None:
    """Map some segments no longer, except where rows of them are still held."""
    for file in list(files):
        _mapped.pop(file, None)


def _map(path: Path, *, sparse: bool) -> tuple[os.stat_result, mmap.mmap]:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        mapping = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
        if sparse and hasattr(mmap, "MADV_RANDOM"):
            mapping.madvise(mmap.MADV_RANDOM)
        return os.fstat(descriptor), mapping
    finally:
        os.close(descriptor)


def _read_batch(reader: pa.RecordBatchFileReader) -> pa.RecordBatch:
    if reader.num_record_batches != 1:
        raise ValueError(f"it holds {reader.num_record_batches} record batches, not 1")
    batch = reader.get_batch(0)
    batch.validate()
    return batch


def _block_rows(metadata: Mapping[bytes, bytes]) -> int:
    if (rows := int(metadata.get(BLOCK_ROWS, b"1"))) < 1:
        raise ValueError(f"its blocks have {rows} rows")
    return rows


def _length_places(batch: pa.RecordBatch, whole: pa.Buffer) -> tuple[_Place, _Place]:
    src, tgt = (batch.column(name).to_numpy(zero_copy_only=True) for name in LENGTHS)
    return _Place.of(src, whole), _Place.of(tgt, whole)


def _unreadable(path: Path, error: Exception) -> DataError:
    if isinstance(error, FileNotFoundError):
        return DataError(f"{path}: no such segment of a token shard; prepare it again.")
    reason = str(error).partition("\n")[0]
    return DataError(f"{path}: not a readable token shard ({reason}); prepare it again.")
