"""Checksums of blocks of rows, so that a reader verifies just the rows that it reads.

Blocks are short: little is read beside the requested rows, even where these are scattered. Each block has
two checksums, one of its lengths and one of its token ids, since batches are cut by lengths only.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64

from mnmt_data.store.ragged import Ragged

CHECKED_ROWS = 64
"""Rows of a block: some 8 KB of token ids, two or three pages of a file."""

Lengths = tuple[NDArray[np.integer], NDArray[np.integer]]
"""Source and target lengths, (rows,) each."""

Checksums = NDArray[np.uint64]
"""One checksum a block: (blocks,)."""


def length_checksums(lengths: Lengths) -> Checksums:
    """Compute the checksums of the lengths of consecutive rows, the first of which begins a block."""
    starts = range(0, len(lengths[0]), CHECKED_ROWS)
    return _checksums([side[start : start + CHECKED_ROWS] for side in lengths] for start in starts)


def token_checksums(src: Ragged, tgt: Ragged) -> Checksums:
    """Compute the checksums of token ids and lengths of consecutive rows; the first begins a block."""
    blocks = zip(_blocks(src), _blocks(tgt), strict=True)
    return _checksums((*source, *target) for source, target in blocks)


def _blocks(rows: Ragged) -> Iterable[tuple[NDArray[np.integer], NDArray[np.integer]]]:
    """Return the lengths and the token ids of each block."""
    lengths, starts = rows.lengths, range(0, len(rows), CHECKED_ROWS)
    ends = [*rows.offsets[:-1:CHECKED_ROWS].tolist(), int(rows.offsets[-1])]
    return (
        (lengths[start : start + CHECKED_ROWS], rows.values[ends[block] : ends[block + 1]])
        for block, start in enumerate(starts)
    )


def _checksums(blocks: Iterable[Iterable[NDArray[np.integer]]]) -> Checksums:
    return np.fromiter(map(_checksum, blocks), dtype=np.uint64)


def _checksum(arrays: Iterable[NDArray[np.integer]]) -> int:
    state = xxh3_64()
    for array in arrays:
        state.update(array.data)
    return state.intdigest()
