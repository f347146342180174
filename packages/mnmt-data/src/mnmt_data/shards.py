"""Token shards: the sentence pairs of one task and split as token ids, on disk and mapped into memory.

A shard is a folder of segments, 00000.arrow and so on, each an Arrow IPC file of one record batch. Rows are
numbered through all segments. A segment is mapped when a row of it is asked for, and let go again before
the pages that were touched add up, so that streaming through a corpus larger than memory needs no more of
it than a small one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mnmt_data.errors import DataError
from mnmt_data.ragged import Ragged, offsets_of
from mnmt_data.segments import Segment, SegmentInfo, open_segment, read_info, total

Rows = NDArray[np.int64]

ROWS_MAPPED = 2**14
"""Rows read from a shard before its segments are mapped anew."""


class Shard:
    """The sentence pairs of one task and split.

    Args:
        path: the folder.
        segments: {file: what is known of it}, in order.
    """

    def __init__(self, path: Path, segments: dict[Path, SegmentInfo]) -> None:
        self.path = path
        self.info = total(segments.values())
        self._paths = tuple(segments)
        self._starts = offsets_of([info.pairs for info in segments.values()])
        self._mapped: dict[int, Segment] = {}
        self._rows_read = 0

    @classmethod
    def open(cls, path: Path) -> Self:
        """Reads what the segments say of themselves; token ids are read when they are asked for.

        Raises:
            DataError: if the folder has no segments, one is missing, truncated or not a segment.
        """
        files = set(path.glob("*.arrow"))
        if not files:
            raise DataError(f"{path}: no such token shard; `mnmt-data prepare` writes them.")
        expected = [segment_path(path, number) for number in range(len(files))]
        if missing := [file for file in expected if file not in files]:
            raise DataError(f"{missing[0]}: this segment of the shard is missing; prepare it again.")
        return cls(path, {file: read_info(file) for file in expected})

    def __len__(self) -> int:
        return self.info.pairs

    def lengths(self, rows: Rows) -> tuple[Rows, Rows]:
        """Source and target lengths of the given rows: (rows,) each.

        Raises:
            DataError: if a length is negative, which no offsets that were written are.
        """
        src, tgt = np.empty(len(rows), dtype=np.int64), np.empty(len(rows), dtype=np.int64)
        for segment, places, local in self._segments_of(rows):
            src[places], tgt[places] = segment.src.lengths_of(local), segment.tgt.lengths_of(local)
        if min(src.min(initial=0), tgt.min(initial=0)) < 0:
            raise DataError(f"{self.path}: a segment is damaged; prepare it again.")
        return src, tgt

    def gather(self, rows: Rows) -> tuple[Ragged, Ragged]:
        """Source and target token ids of the given rows, copied, in the order asked for."""
        found = list(self._segments_of(rows))
        src = Ragged.concatenate([segment.src.take(local) for segment, _, local in found])
        tgt = Ragged.concatenate([segment.tgt.take(local) for segment, _, local in found])
        if len(found) == 1:
            return src, tgt
        back = np.argsort(np.concatenate([places for _, places, _ in found]), kind="stable")
        return src.take(back), tgt.take(back)

    def blocks(self, size: int = 2**16) -> Iterator[tuple[Ragged, Ragged]]:
        """All pairs in order, `size` at a time."""
        for start in range(0, len(self), size):
            yield self.gather(np.arange(start, min(start + size, len(self))))

    @cached_property
    def _single(self) -> bool:
        return len(self._paths) == 1

    def _segments_of(self, rows: Rows) -> Iterator[tuple[Segment, Rows, Rows]]:
        """`(segment, places in rows, numbers in it)` of every segment that holds some of the rows."""
        self._let_go(len(rows))
        if self._single or not len(rows):
            yield self._segment(0), np.arange(len(rows)), rows
            return
        numbers = np.searchsorted(self._starts, rows, side="right") - 1
        for number in np.unique(numbers).tolist():
            places = np.flatnonzero(numbers == number)
            yield self._segment(number), places, rows[places] - self._starts[number]

    def _segment(self, number: int) -> Segment:
        if number not in self._mapped:
            self._mapped[number] = open_segment(self._paths[number])
        return self._mapped[number]

    def _let_go(self, rows: int) -> None:
        self._rows_read += rows
        if self._rows_read > ROWS_MAPPED:
            self._mapped.clear()
            self._rows_read = 0


def segment_path(shard: Path, number: int) -> Path:
    """Where a segment of a shard is."""
    return shard / f"{number:05}.arrow"
