"""Segments of a shard: Arrow IPC files that appear whole or not at all, and carry their own counts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from xxhash import xxh3_64_hexdigest

from mnmt_data.errors import DataError
from mnmt_data.store.atomic_file import atomic_file, checksum
from mnmt_data.store.block_checksums import CHECKED_ROWS, Checksums, length_checksums, token_checksums
from mnmt_data.store.ragged import Ragged

TOKEN_TYPES = (pa.large_list(pa.uint16()), pa.large_list(pa.int32()))
"""Types of a column of token ids."""

INFO = b"mnmt"
"""The key of the counts in the metadata of a segment."""

BLOCK_ROWS = b"block_rows"
"""The key of the number of rows to draw together, in the metadata of a segment of a shuffled shard."""

NAME = b"segment"
"""The key of the shard's and the segment's name, in the metadata of a segment."""

CHECKSUM = b"checksum"
"""The key of the checksum of all other metadata."""

LENGTHS = ("src_length", "tgt_length")
"""The columns of lengths."""

CHECKSUMS = "checksums"
"""The column of checksums: in the first row of a block, one of its lengths and one of its token ids."""


@dataclass(frozen=True, kw_only=True)
class SegmentInfo:
    """Counts of the pairs and tokens of one or more segments."""

    pairs: int
    """Sentence pairs."""

    src_tokens: int
    """Source tokens, `</s>` included, and the tag where sources have it."""

    tgt_tokens: int
    """Target tokens, `</s>` included."""

    longest: int
    """Tokens of the longest pair, both sides together."""

    longest_side: int
    """Tokens of the longest sentence of either side."""

    @classmethod
    def of(cls, src_lengths: NDArray[np.int64], tgt_lengths: NDArray[np.int64]) -> Self:
        """Count pairs with these lengths, (pairs,) each."""
        return cls(
            pairs=len(src_lengths),
            src_tokens=int(src_lengths.sum()),
            tgt_tokens=int(tgt_lengths.sum()),
            longest=int((src_lengths + tgt_lengths).max(initial=0)),
            longest_side=int(np.maximum(src_lengths, tgt_lengths).max(initial=0)),
        )


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


def write_segment(path: Path, src: Ragged, tgt: Ragged, *, block_rows: int = 1) -> SegmentInfo:
    """Write an Arrow IPC file with one record batch, columns `src` and `tgt` of large_list<uint16|int32>.

    The file appears complete or not at all, also if the machine stops meanwhile. Two more columns hold the
    lengths in as few bytes as the longest needs, so that batches are cut without the offsets, which take
    eight; a last one holds the checksums by which rows are verified when they are read.

    Args:
        path: The file.
        src: (pairs,) source token ids.
        tgt: (pairs,) target token ids.
        block_rows: Consecutive rows to draw together, if the whole shard was shuffled; else 1.

    Raises:
        ValueError: If the two sides differ in number of rows, or an id is negative or above 2**31 - 1.
    """
    if len(src) != len(tgt):
        raise ValueError(f"`tgt` must have as many rows as `src` ({len(src)}), but has {len(tgt)}.")
    src, tgt, info = _as_stored(src), _as_stored(tgt), SegmentInfo.of(src.lengths, tgt.lengths)
    lengths = _narrow(src.lengths), _narrow(tgt.lengths)
    columns = {
        "src": _as_arrow(src),
        "tgt": _as_arrow(tgt),
        **{name: pa.array(side) for name, side in zip(LENGTHS, lengths, strict=True)},
        CHECKSUMS: _at_blocks(len(src), length_checksums(lengths), token_checksums(src, tgt)),
    }
    metadata = {INFO: json.dumps(asdict(info)).encode(), NAME: segment_name(path).encode()}
    if block_rows > 1:
        metadata[BLOCK_ROWS] = str(block_rows).encode()
    metadata[CHECKSUM] = metadata_checksum(metadata)
    schema = pa.schema([(name, column.type) for name, column in columns.items()], metadata=metadata)
    with atomic_file(path) as file, pa.ipc.new_file(file, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(list(columns.values()), schema=schema))
    return info


def segment_name(path: Path) -> str:
    """Return the name of a segment after that of its shard: `train.en-de/00000.arrow`."""
    return f"{path.parent.name}/{path.name}"


def metadata_checksum(metadata: Mapping[bytes, bytes]) -> bytes:
    """Compute the checksum of the metadata of a segment without `CHECKSUM`."""
    others = sorted(item for item in metadata.items() if item[0] != CHECKSUM)
    return xxh3_64_hexdigest(b"\0".join(part for item in others for part in item)).encode()


def check_file(path: Path, *, sha256: str) -> None:
    """Read a whole file, and compare it with its checksum.

    Raises:
        DataError: If the checksum differs.
    """
    if checksum(path) != sha256:
        raise changed(path)


def changed(path: Path) -> DataError:
    """Return the error that a file is not what was written."""
    return DataError(f"{path}: has changed since it was written; remove it and prepare again.")


def _narrow(lengths: NDArray[np.int64]) -> NDArray[np.unsignedinteger]:
    """Return lengths in one byte each, or in two or four where a row is longer."""
    return lengths.astype(np.min_scalar_type(int(lengths.max(initial=0))))


def _as_stored(rows: Ragged) -> Ragged:
    """Return rows with `values` cut to them, as uint16 or int32."""
    rows.check()
    start, end = rows.offsets[0], rows.offsets[-1]
    values = rows.values[start:end]
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    if low < 0 or high >= 2**31:
        raise ValueError(f"`values` must be token ids from 0 to 2**31 - 1, but reach from {low} to {high}.")
    return Ragged(values.astype(np.uint16 if high < 2**16 else np.int32, copy=False), rows.offsets - start)


def _as_arrow(rows: Ragged) -> pa.LargeListArray:
    return pa.LargeListArray.from_arrays(pa.array(rows.offsets), pa.array(rows.values))


def _at_blocks(rows: int, lengths: Checksums, tokens: Checksums) -> pa.ListArray:
    """Return a column with both checksums of each block in its first row, and empty lists in the others."""
    ends = -2 * (np.arange(rows + 1, dtype=np.int32) // -CHECKED_ROWS)
    sums = np.stack([lengths, tokens], axis=1).ravel()
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(sums))
