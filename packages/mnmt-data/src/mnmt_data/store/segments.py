"""Segments of a shard: Arrow IPC files that appear whole or not at all, and carry their own counts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mnmt_data.errors import DataError
from mnmt_data.store.atomic_file import atomic_file, checksum
from mnmt_data.store.ragged import Ragged

TOKEN_TYPES = (pa.large_list(pa.uint16()), pa.large_list(pa.int32()))
"""The columns that token ids may be in."""

INFO = b"mnmt"
"""The key of the counts in the metadata of a segment."""

BLOCK_ROWS = b"block_rows"
"""The key of the number of rows that are read together, in the metadata of a segment of a shuffled shard."""

LENGTHS = ("src_length", "tgt_length")
"""The columns of lengths, in a segment of a shuffled shard."""


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

    The file appears complete or not at all, also if the machine stops meanwhile. A segment of a shuffled
    shard has two more columns, the lengths in as few bytes as the longest needs, so that batches are cut
    without the offsets, which take eight.

    Args:
        path: The file.
        src: (pairs,) source token ids.
        tgt: (pairs,) target token ids.
        block_rows: Rows that are drawn one after the other, where the whole shard was shuffled; else 1.

    Raises:
        ValueError: If the two sides differ in number of rows, or an id is negative or above 2**31 - 1.
    """
    if len(src) != len(tgt):
        raise ValueError(f"`tgt` must have as many rows as `src` ({len(src)}), but has {len(tgt)}.")
    info = SegmentInfo.of(src.lengths, tgt.lengths)
    columns, metadata = {"src": _as_arrow(src), "tgt": _as_arrow(tgt)}, {INFO: json.dumps(asdict(info))}
    if block_rows > 1:
        columns |= dict(zip(LENGTHS, map(_narrow, (src.lengths, tgt.lengths)), strict=True))
        metadata[BLOCK_ROWS] = str(block_rows)
    schema = pa.schema([(name, column.type) for name, column in columns.items()], metadata=metadata)
    with atomic_file(path) as file, pa.ipc.new_file(file, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(list(columns.values()), schema=schema))
    return info


def check_segment(path: Path, *, sha256: str) -> None:
    """Read a whole segment, and compare it with its checksum.

    Raises:
        DataError: If a byte of it has changed.
    """
    if checksum(path) != sha256:
        raise DataError(f"{path}: has changed since it was written; prepare the data again.")


def _narrow(lengths: NDArray[np.int64]) -> pa.Array:
    """Return lengths in one byte each, or in two or four where a row is longer."""
    return pa.array(lengths.astype(np.min_scalar_type(int(lengths.max(initial=0)))))


def _as_arrow(rows: Ragged) -> pa.LargeListArray:
    rows.check()
    start, end = rows.offsets[0], rows.offsets[-1]
    values = rows.values[start:end]
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    if low < 0 or high >= 2**31:
        raise ValueError(f"`values` must be token ids from 0 to 2**31 - 1, but reach from {low} to {high}.")
    values = values.astype(np.uint16 if high < 2**16 else np.int32)
    return pa.LargeListArray.from_arrays(pa.array(rows.offsets - start), pa.array(values))
