"""Segments mapped into memory, whose rows are read in any order.

Python keeps a file open as long as it is mapped. So at most `MOST_MAPPED` segments of all shards are mapped
at once in a process. The places of the arrays in a segment are remembered, so that it is mapped again in
microseconds. Arrow's own mappings keep no file open, but ask the system to read all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mnmt_data.store.block_checksums import CHECKED_ROWS, Lengths
from mnmt_data.store.places import Source
from mnmt_data.store.ragged import Ragged
from mnmt_data.store.segment_file import SegmentFile

Rows = NDArray[np.int64]

MOST_MAPPED = 64
"""Most segments mapped at once in a process."""

_mapped: dict[SegmentFile, Segment] = {}
"""The mapped segments, least recently used first. No lock: a fork could copy it while it is held."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Segment:
    """Some sentence pairs of a shard, as views into a mapped file.

    The block of a row is verified when this process first asks for the row.
    """

    file: SegmentFile
    whole: pa.Buffer
    """All of the file."""

    src: Ragged
    tgt: Ragged
    lengths: Lengths
    """Lengths of all rows."""

    def __len__(self) -> int:
        return len(self.src)

    def lengths_of(self, rows: Rows) -> Lengths:
        """Return the lengths of the given rows.

        Raises:
            DataError: If their checksums do not match.
        """
        self._verify(rows, self.file.is_verified[0], self.file.read_lengths)
        return self.lengths[0][rows], self.lengths[1][rows]

    def take(self, rows: Rows) -> tuple[Ragged, Ragged]:
        """Return the given rows, copied.

        Raises:
            DataError: If their checksums do not match.
        """
        self._verify(rows, self.file.is_verified[1], self.file.read_tokens)
        return self.src.take(rows), self.tgt.take(rows)

    def _verify(
        self, rows: Rows, is_verified: NDArray[np.bool_], read: Callable[[Source, int, int], object]
    ) -> None:
        """Read the blocks of the rows that are not verified yet; merge neighbouring blocks."""
        blocks = rows // CHECKED_ROWS
        if is_verified[blocks].all():
            return
        fresh = np.unique(blocks[~is_verified[blocks]])
        for run in np.split(fresh, np.flatnonzero(np.diff(fresh) > 1) + 1):
            stop = min((int(run[-1]) + 1) * CHECKED_ROWS, len(self))
            read(self.whole, int(run[0]) * CHECKED_ROWS, stop)


def map_segment(file: SegmentFile, *, sparse: bool = False) -> Segment:
    """Map a segment into memory unless it is mapped; unmap the least recently used if there are too many.

    Args:
        file: The segment.
        sparse: Whether few, scattered rows will be read; the system then reads nothing ahead.

    Raises:
        DataError: If the file was removed or written again since it was opened.
    """
    segment = _mapped.pop(file, None)
    if segment is None:
        unmap(list(_mapped)[: max(0, len(_mapped) + 1 - MOST_MAPPED)])
        whole = file.mapping(sparse=sparse)
        src, tgt, lengths = file.views(whole)
        segment = Segment(file=file, whole=whole, src=src, tgt=tgt, lengths=lengths)
    _mapped[file] = segment
    return segment


def unmap(files: Iterable[SegmentFile]) -> None:
    """Unmap segments; memory that arrays still refer to stays mapped."""
    for file in list(files):
        _mapped.pop(file, None)
