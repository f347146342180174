"""Segments of a shard: Arrow IPC files that appear whole or not at all, and carry their own counts."""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from mnmt_data.errors import DataError
from mnmt_data.store.atomic_file import atomic_file, checksum
from mnmt_data.store.ragged import Ragged

_TOKEN_TYPES = (pa.large_list(pa.uint16()), pa.large_list(pa.int32()))
_INFO = b"mnmt"


@dataclass(frozen=True, kw_only=True)
class SegmentInfo:
    """Counts of the pairs and tokens of one or more segments."""

    pairs: int
    """Sentence pairs."""

    src_tokens: int
    """Source tokens, tag and `</s>` included."""

    tgt_tokens: int
    """Target tokens, `</s>` included."""

    longest: int
    """Tokens of the longest pair, both sides together."""

    longest_side: int
    """Tokens of the longest sentence of either side."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Segment:
    """Some sentence pairs of a shard, as views into a mapped file."""

    src: Ragged
    tgt: Ragged
    mapping: mmap.mmap
    """The mapped file."""

    def __len__(self) -> int:
        return len(self.src)

    def release_pages(self) -> None:
        """Give back the memory of the pages that were read; they are read again where they are used."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self.mapping.madvise(mmap.MADV_DONTNEED)


def total(infos: Iterable[SegmentInfo]) -> SegmentInfo:
    """Return the counts of several segments together."""
    infos = list(infos)
    return SegmentInfo(
        pairs=sum(info.pairs for info in infos),
        src_tokens=sum(info.src_tokens for info in infos),
        tgt_tokens=sum(info.tgt_tokens for info in infos),
        longest=max((info.longest for info in infos), default=0),
        longest_side=max((info.longest_side for info in infos), default=0),
    )


def write_segment(path: Path, src: Ragged, tgt: Ragged) -> SegmentInfo:
    """Write an Arrow IPC file with one record batch, columns `src` and `tgt` of large_list<uint16|int32>.

    The file appears complete or not at all, also if the machine stops meanwhile.

    Raises:
        ValueError: If the two sides differ in number of rows, or an id is negative or above 2**31 - 1.
    """
    if len(src) != len(tgt):
        raise ValueError(f"`tgt` must have as many rows as `src` ({len(src)}), but has {len(tgt)}.")
    info = _info(src, tgt)
    columns = [_as_arrow(src), _as_arrow(tgt)]
    fields = [pa.field(name, column.type) for name, column in zip(("src", "tgt"), columns, strict=True)]
    schema = pa.schema(fields, metadata={_INFO: json.dumps(asdict(info))})
    with atomic_file(path) as file, pa.ipc.new_file(file, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    return info


def open_segment(path: Path) -> Segment:
    """Map a segment into memory.

    Raises:
        DataError: If the file is missing, truncated or not a segment.
    """
    try:
        with path.open("rb") as file:
            mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        batch = _read_batch(pa.BufferReader(pa.py_buffer(mapping)))
        src, tgt = (_as_ragged(batch.column(side)) for side in ("src", "tgt"))
        return Segment(src=src, tgt=tgt, mapping=mapping)
    except (OSError, KeyError, ValueError, pa.ArrowException) as error:
        raise _unreadable(path, error) from error


def read_info(path: Path) -> SegmentInfo:
    """Read the counts of a segment from its header and footer alone.

    Raises:
        DataError: If the file is missing, truncated or not a segment.
    """
    try:
        with pa.memory_map(str(path)) as file:
            _read_batch(file)
            metadata = pa.ipc.open_file(file).schema.metadata or {}
        return SegmentInfo(**json.loads(metadata[_INFO]))
    except (OSError, KeyError, ValueError, TypeError, pa.ArrowException) as error:
        raise _unreadable(path, error) from error


def check_segment(path: Path, *, sha256: str) -> None:
    """Read a whole segment, and compare it with its checksum.

    Raises:
        DataError: If a byte of it has changed.
    """
    if checksum(path) != sha256:
        raise DataError(f"{path}: has changed since it was written; prepare the data again.")


def _info(src: Ragged, tgt: Ragged) -> SegmentInfo:
    src_lengths, tgt_lengths = src.lengths, tgt.lengths
    return SegmentInfo(
        pairs=len(src),
        src_tokens=int(src_lengths.sum()),
        tgt_tokens=int(tgt_lengths.sum()),
        longest=int((src_lengths + tgt_lengths).max(initial=0)),
        longest_side=int(np.maximum(src_lengths, tgt_lengths).max(initial=0)),
    )


def _as_arrow(rows: Ragged) -> pa.LargeListArray:
    rows.check()
    start, end = rows.offsets[0], rows.offsets[-1]
    values = rows.values[start:end]
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    if low < 0 or high >= 2**31:
        raise ValueError(f"`values` must be token ids from 0 to 2**31 - 1, but reach from {low} to {high}.")
    values = values.astype(np.uint16 if high < 2**16 else np.int32)
    return pa.LargeListArray.from_arrays(pa.array(rows.offsets - start), pa.array(values))


def _read_batch(file: pa.NativeFile) -> pa.RecordBatch:
    reader = pa.ipc.open_file(file)
    if reader.num_record_batches != 1:
        raise ValueError(f"it holds {reader.num_record_batches} record batches, not 1")
    batch = reader.get_batch(0)
    batch.validate()
    return batch


def _as_ragged(column: pa.Array) -> Ragged:
    if column.type not in _TOKEN_TYPES:
        raise ValueError(f"its columns are {column.type}, not large_list<uint16> or large_list<int32>")
    return Ragged(column.values.to_numpy(zero_copy_only=True), column.offsets.to_numpy(zero_copy_only=True))


def _unreadable(path: Path, error: Exception) -> DataError:
    if isinstance(error, FileNotFoundError):
        return DataError(f"{path}: no such segment of a token shard; prepare it again.")
    reason = str(error).partition("\n")[0]
    return DataError(f"{path}: not a readable token shard ({reason}); prepare it again.")
