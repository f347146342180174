"""Token shards: the sentence pairs of one task and split as token ids, on disk and mapped into memory.

A shard is a folder of segments, 00000.arrow and so on, each an Arrow IPC file of one record batch. Rows are
numbered through all segments. A segment is mapped when a row of it is asked for, and no file stays open.
Systems map files in pages of up to 2 MB, so that some thousand rows of a large shard would bring all of it
into memory: its rows are read in order, and after every few hundred its segments are let go of. So streaming
takes the same memory for any corpus.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mnmt_data.errors import DataError
from mnmt_data.store.ragged import Ragged, offsets_of
from mnmt_data.store.segment_file import Segment, SegmentFile
from mnmt_data.store.segments import total

Rows = NDArray[np.int64]

ROWS_MAPPED = 256
"""Rows read from a large shard before its segments are let go of."""

SMALL = 2**28
"""Bytes of a shard that may stay in memory as a whole."""


class Shard:
    """The sentence pairs of one task and split.

    Args:
        path: The folder.
        segments: Its segments, in order.
    """

    def __init__(self, path: Path, segments: Sequence[SegmentFile]) -> None:
        self.path = path
        self.info = total(file.info for file in segments)
        self._files = tuple(segments)
        self._starts = offsets_of([file.info.pairs for file in segments])
        self._is_small = sum(file.size for file in segments) <= SMALL
        self._mapped: dict[int, Segment] = {}
        self._rows_mapped = 0

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read the counts of the segments; token ids are read only where they are used.

        Raises:
            DataError: If the folder has no segments, one is missing, truncated or not a segment.
        """
        files = set(path.glob("*.arrow"))
        if not files:
            raise DataError(f"{path}: no such token shard; `mnmt-data prepare` writes them.")
        expected = [segment_path(path, number) for number in range(len(files))]
        if missing := [file for file in expected if file not in files]:
            raise DataError(f"{missing[0]}: this segment of the shard is missing; prepare it again.")
        return cls(path, [SegmentFile.open(file) for file in expected])

    def __len__(self) -> int:
        return self.info.pairs

    def lengths(self, rows: Rows) -> tuple[Rows, Rows]:
        """Return source and target lengths of the given rows: (rows,) each.

        Raises:
            DataError: If a length is negative, which no offsets that were written are.
        """
        src, tgt = np.empty(len(rows), dtype=np.int64), np.empty(len(rows), dtype=np.int64)
        for segment, positions, local in self._pieces(rows):
            src[positions], tgt[positions] = segment.src.lengths_of(local), segment.tgt.lengths_of(local)
        if min(src.min(initial=0), tgt.min(initial=0)) < 0:
            raise DataError(f"{self.path}: a segment is damaged; prepare it again.")
        return src, tgt

    def gather(self, rows: Rows) -> tuple[Ragged, Ragged]:
        """Return source and target token ids of the given rows, copied, in the same order."""
        pieces = [
            (positions, segment.src.take(local), segment.tgt.take(local))
            for segment, positions, local in self._pieces(rows)
        ]
        src = Ragged.concatenate([piece for _, piece, _ in pieces])
        tgt = Ragged.concatenate([piece for _, _, piece in pieces])
        positions = np.concatenate([positions for positions, _, _ in pieces])
        if (np.diff(positions) > 0).all():
            return src, tgt
        back = np.argsort(positions, kind="stable")
        return src.take(back), tgt.take(back)

    def blocks(self, size: int = 2**16) -> Iterator[tuple[Ragged, Ragged]]:
        """Yield all pairs in order, `size` at a time."""
        for start in range(0, len(self), size):
            yield self.gather(np.arange(start, min(start + size, len(self))))

    def _pieces(self, rows: Rows) -> Iterator[tuple[Segment, Rows, Rows]]:
        """Yield `(segment, positions in rows, rows of the segment)` until all rows are covered."""
        if not len(rows) or (self._is_small and len(self._files) == 1):
            yield self._segment(0), np.arange(len(rows)), rows
            return
        order = np.argsort(rows, kind="stable")
        numbers = np.searchsorted(self._starts, rows[order], side="right") - 1
        for start, stop in self._cuts(numbers):
            number, positions = int(numbers[start]), order[start:stop]
            yield self._segment(number), positions, rows[positions] - self._starts[number]
            self._let_go_after(stop - start)

    def _cuts(self, numbers: Rows) -> Iterator[tuple[int, int]]:
        """Yield the bounds of the pieces, given each row's segment in order; none is of two segments."""
        step = len(numbers) if self._is_small else ROWS_MAPPED
        borders = np.flatnonzero(np.diff(numbers)) + 1
        for start, stop in pairwise([0, *borders.tolist(), len(numbers)]):
            yield from ((first, min(first + step, stop)) for first in range(start, stop, step))

    def _segment(self, number: int) -> Segment:
        segment = self._mapped.get(number)
        if segment is None:
            segment = self._mapped[number] = self._files[number].map()
        return segment

    def _let_go_after(self, rows: int) -> None:
        """Count rows read from a large shard, and let go of its segments when there are enough."""
        self._rows_mapped += rows
        if not self._is_small and self._rows_mapped >= ROWS_MAPPED:
            self._mapped.clear()
            self._rows_mapped = 0


def segment_path(shard: Path, number: int) -> Path:
    """Return the path of a segment of a shard."""
    return shard / f"{number:05}.arrow"
