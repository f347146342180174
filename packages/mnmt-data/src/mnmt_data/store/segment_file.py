"""Segments on disk: a file is parsed once; its arrays are then read and verified at their places.

Consecutive rows are read without mapping the file into memory. Blocks are compared with their checksums when
they are first read, so that exactly what is used is verified.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mnmt_data.errors import DataError
from mnmt_data.store.block_checksums import (
    CHECKED_ROWS,
    Checksums,
    Lengths,
    length_checksums,
    token_checksums,
)
from mnmt_data.store.places import Place, RaggedPlace, Source
from mnmt_data.store.ragged import Ragged
from mnmt_data.store.segments import (
    BLOCK_ROWS,
    CHECKSUM,
    CHECKSUMS,
    INFO,
    LENGTHS,
    NAME,
    TOKEN_TYPES,
    SegmentInfo,
    changed,
    metadata_checksum,
    segment_name,
)

Rows = NDArray[np.int64]

VERIFIED_ROWS = 64 * CHECKED_ROWS
"""Rows read at a time to verify a whole segment: some 400 KB."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SegmentFile:
    """A segment on disk: its counts, and the places of its arrays."""

    path: Path
    info: SegmentInfo
    """Counts of its pairs and tokens."""

    size: int
    """Bytes of the file."""

    modified: int
    """Time of the last change, in nanoseconds."""

    block_rows: int
    """Consecutive rows to draw together, if the whole shard was shuffled; else 1."""

    src: RaggedPlace
    tgt: RaggedPlace
    blocks: BlockPlaces
    """Lengths and checksums."""

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read the counts and places of a segment, and no tokens.

        Raises:
            DataError: If the file is missing, truncated, not a segment, or another one renamed.
        """
        with _explain(path):
            status, mapping = _map(path, sparse=True)
            whole = pa.py_buffer(mapping)
            reader = pa.ipc.open_file(whole)
            batch, metadata = _read_batch(reader), reader.schema.metadata or {}
            src, tgt = (_token_places(batch, side, whole) for side in ("src", "tgt"))
            _check_metadata(metadata, path)
            return cls(
                path=path,
                info=_info(metadata, batch),
                size=status.st_size,
                modified=status.st_mtime_ns,
                block_rows=_block_rows(metadata),
                src=src,
                tgt=tgt,
                blocks=BlockPlaces.of(batch, whole),
            )

    def mapping(self, *, sparse: bool) -> pa.Buffer:
        """Map the whole file into memory; it stays mapped while anything refers to it.

        Args:
            sparse: Whether few, scattered rows will be read; the system then reads nothing ahead.

        Raises:
            DataError: If the file was removed or written again since it was opened.
        """
        with _explain(self.path):
            status, mapping = _map(self.path, sparse=sparse)
            self._check(status)
            return pa.py_buffer(mapping)

    @contextmanager
    def descriptor(self) -> Iterator[int]:
        """Open the file for scattered reads; the system reads nothing ahead.

        Raises:
            DataError: If the file was removed or written again since it was opened.
        """
        with _explain(self.path), self.path.open("rb", buffering=0) as file:
            self._check(os.fstat(file.fileno()))
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            yield file.fileno()

    def views(self, whole: pa.Buffer) -> tuple[Ragged, Ragged, Lengths]:
        """Return sources, targets and lengths as views of the mapped file, not verified.

        Raises:
            DataError: If they do not lie in the file.
        """
        with _explain(self.path):
            return self.src.view(whole), self.tgt.view(whole), self.blocks.lengths(whole, 0, self.info.pairs)

    def read_lengths(self, source: Source, start: int, stop: int) -> Lengths:
        """Read the lengths of consecutive whole blocks of rows; verify them the first time.

        Raises:
            DataError: If their checksums do not match.
        """
        with _explain(self.path):
            lengths = self.blocks.lengths(source, start, stop)
            self._verify_once(0, source, start, stop, lambda: length_checksums(lengths))
            return lengths

    def read_tokens(self, source: Source, start: int, stop: int) -> tuple[Ragged, Ragged]:
        """Read the token ids of consecutive whole blocks of rows; verify them the first time.

        Raises:
            DataError: If their checksums do not match.
        """
        with _explain(self.path):
            src, tgt = (side.read(source, start, stop) for side in (self.src, self.tgt))
            self._verify_once(1, source, start, stop, lambda: token_checksums(src, tgt))
            return src, tgt

    def _verify_once(
        self, kind: int, source: Source, start: int, stop: int, compute: Callable[[], Checksums]
    ) -> None:
        """Compare blocks with their checksums, each block once."""
        is_verified = self.is_verified[kind, start // CHECKED_ROWS : -(stop // -CHECKED_ROWS)]
        if not is_verified.all():
            if not np.array_equal(compute(), self.blocks.checksums(source, start, stop)[:, kind]):
                raise changed(self.path)
            is_verified[:] = True

    @cached_property
    def is_verified(self) -> NDArray[np.bool_]:
        """(2, blocks) whether this process has verified the lengths, and the token ids, of a block."""
        return np.zeros((2, -(self.info.pairs // -CHECKED_ROWS)), dtype=np.bool_)

    def verify(self) -> None:
        """Read and verify the whole segment, once.

        Raises:
            DataError: If a checksum does not match.
        """
        if self.is_verified.all():
            return
        with self.descriptor() as descriptor:
            for start in range(0, self.info.pairs, VERIFIED_ROWS):
                rows = (start, min(start + VERIFIED_ROWS, self.info.pairs))
                self.read_lengths(descriptor, *rows)
                self.read_tokens(descriptor, *rows)

    def _check(self, status: os.stat_result) -> None:
        if (status.st_size, status.st_mtime_ns) != (self.size, self.modified):
            raise DataError(f"{self.path}: was written again while it was read; start again.")


@dataclass(frozen=True, kw_only=True)
class BlockPlaces:
    """The places of the lengths of a segment, and of the checksums of its blocks."""

    src: Place
    tgt: Place
    sums: Place
    """(2 · blocks,)"""

    @classmethod
    def of(cls, batch: pa.RecordBatch, whole: pa.Buffer) -> Self:
        """Return the places of the columns in a mapped file.

        Raises:
            ValueError: If a column has another type.
        """
        src, tgt = (Place.of(batch.column(name), whole) for name in LENGTHS)
        sums = batch.column(CHECKSUMS)
        if sums.type != pa.list_(pa.uint64()) or {src.dtype.kind, tgt.dtype.kind} != {"u"}:
            raise ValueError(f"its lengths and checksums are {src.dtype}, {tgt.dtype} and {sums.type}")
        return cls(src=src, tgt=tgt, sums=Place.of(sums.values, whole))

    def lengths(self, source: Source, start: int, stop: int) -> Lengths:
        """Read the lengths of some consecutive rows."""
        return self.src.read(source, start, stop), self.tgt.read(source, start, stop)

    def checksums(self, source: Source, start: int, stop: int) -> Checksums:
        """Read the checksums of whole blocks, of lengths and of tokens: (blocks, 2)."""
        first, end = start // CHECKED_ROWS, -(stop // -CHECKED_ROWS)
        return self.sums.read(source, 2 * first, 2 * end).reshape(-1, 2)


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Consecutive rows of a segment that are all read, though only some are requested."""

    file: SegmentFile
    start: int
    stop: int
    """Requested rows lie in [start, stop); their blocks are read whole."""

    @property
    def rows(self) -> Rows:
        """The numbers of all its rows in the segment."""
        return np.arange(self.start, self.stop)

    def lengths_of(self, rows: Rows) -> Lengths:
        """Read the lengths, and return those of the given rows of the segment.

        Raises:
            DataError: If the checksums of the lengths do not match.
        """
        first, end = self._bounds()
        with self.file.descriptor() as descriptor:
            src, tgt = self.file.read_lengths(descriptor, first, end)
        return src[rows - first], tgt[rows - first]

    def take(self, rows: Rows) -> tuple[Ragged, Ragged]:
        """Read the token ids, and return those of the given rows of the segment.

        Raises:
            DataError: If the checksums of the token ids do not match.
        """
        first, end = self._bounds()
        with self.file.descriptor() as descriptor:
            src, tgt = self.file.read_tokens(descriptor, first, end)
        return src.take(rows - first), tgt.take(rows - first)

    def _bounds(self) -> tuple[int, int]:
        """Return the bounds of the blocks that the rows are in."""
        first, end = self.start // CHECKED_ROWS, -(self.stop // -CHECKED_ROWS)
        return first * CHECKED_ROWS, min(end * CHECKED_ROWS, self.file.info.pairs)


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


def _check_metadata(metadata: Mapping[bytes, bytes], path: Path) -> None:
    if CHECKSUM not in metadata:
        raise ValueError("it has no checksums, as those of version 0.4")
    if metadata[CHECKSUM] != metadata_checksum(metadata):
        raise ValueError("its description has changed")
    if (name := metadata[NAME].decode()) != segment_name(path):
        raise ValueError(f"it is the segment {name}")


def _info(metadata: Mapping[bytes, bytes], batch: pa.RecordBatch) -> SegmentInfo:
    info = SegmentInfo(**json.loads(metadata[INFO]))
    if info.pairs != len(batch):
        raise ValueError(f"it holds {len(batch)} pairs, not {info.pairs}")
    return info


def _block_rows(metadata: Mapping[bytes, bytes]) -> int:
    if (rows := int(metadata.get(BLOCK_ROWS, b"1"))) < 1:
        raise ValueError(f"its blocks have {rows} rows")
    return rows


def _token_places(batch: pa.RecordBatch, side: str, whole: pa.Buffer) -> RaggedPlace:
    column = batch.column(side)
    if column.type not in TOKEN_TYPES:
        raise ValueError(f"its columns are {column.type}, not large_list<uint16> or large_list<int32>")
    return RaggedPlace.of(column, whole)


@contextmanager
def _explain(path: Path) -> Iterator[None]:
    """Turn the errors of a damaged file into a DataError that names it."""
    try:
        yield
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such segment of a token shard; prepare again.") from error
    except (OSError, KeyError, ValueError, TypeError, pa.ArrowException) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(
            f"{path}: not a readable token shard ({reason}); remove it and prepare again."
        ) from error
