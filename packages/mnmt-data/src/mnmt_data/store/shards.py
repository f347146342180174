"""Token shards: the sentence pairs of a split as token ids, on disk and mapped into memory.

A shard is a folder of segments, 00000.arrow and so on, each an Arrow IPC file of one record batch. Rows are
numbered through all segments. A segment is mapped when a row of it is asked for. Both directions of two
languages may read the same shard; sources get their target tag when they are read (`Direction`).

A large shard never has more than a few rows in memory. Where many rows of one stretch are requested, as from
a shuffled shard, whose rows are drawn a block at a time, only the stretch is read. Scattered rows are read
from mapped segments. Systems map files in pages of up to 2 MB, so that a few thousand scattered rows would
bring a whole shard into memory: rows are read in order, and segments are unmapped after every few hundred.
So streaming takes the same memory for any corpus.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from tokenize import TokenError
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mnmt_data.errors import DataError
from mnmt_data.store.atomic_file import atomic_file
from mnmt_data.store.block_checksums import CHECKED_ROWS
from mnmt_data.store.direction import Direction
from mnmt_data.store.mapped_segment import Segment, map_segment, unmap
from mnmt_data.store.ragged import Ragged, offsets_of
from mnmt_data.store.segment_file import SegmentFile, Stretch
from mnmt_data.store.segments import SegmentInfo, check_file, total

Rows = NDArray[np.int64]
Piece = tuple[Segment | Stretch, Rows, Rows]
"""(source of some rows, their positions in the request, their numbers in the segment)."""

AS_STORED = Direction()

WEIGHTS = "weights.npy"
"""File beside the segments with the weight of each pair's loss, where weights differ."""

ROWS_MAPPED = 256
"""Rows read from a large shard before its segments are unmapped."""

STRETCH_ROWS = 2**12
"""Most rows of a stretch of a large shard."""

DENSE_ROWS = 2**6
"""Mean number of requested rows a stretch from which on stretches are read whole.

With about 64 tokens a pair, no page of a stretch would be skipped anyway.
"""

SMALL = 2**28
"""Most bytes of a shard that may stay in memory as a whole."""

READ_WHOLE = 2**32
"""Most bytes of a shard whose segments are verified as a whole before rows are read one by one."""


class Shard:
    """The sentence pairs of one task and split.

    Args:
        path: The folder.
        segments: Its segments, in order.
        weights_sha256: SHA-256 of the weights, if it is known.
        direction: How the task reads the pairs.
        info: The counts of its pairs and tokens as the task reads them, if they are known.
        digest: Digest of all segments, if it is known.
    """

    def __init__(
        self,
        path: Path,
        segments: Sequence[SegmentFile],
        *,
        weights_sha256: str | None = None,
        direction: Direction = AS_STORED,
        info: SegmentInfo | None = None,
        digest: str | None = None,
    ) -> None:
        self.path = path
        self.digest = digest
        """Digest of its token ids and how the task reads them; None if it is unknown."""
        self.info = info or total(file.info for file in segments)
        self.block_rows = min(file.block_rows for file in segments)
        """Consecutive rows to draw together, if the shard was shuffled; else 1."""
        self._files = tuple(segments)
        self._starts = offsets_of([file.info.pairs for file in segments])
        self._size = sum(file.size for file in segments)
        self._is_small = self._size <= SMALL
        self._weights_sha256 = weights_sha256
        self._direction = direction
        self._touched: set[SegmentFile] = set()
        self._rows_mapped = 0
        if (pairs := int(self._starts[-1])) != self.info.pairs:
            raise DataError(
                f"{path}: must have {self.info.pairs:,} pairs, not {pairs:,}; remove it and prepare again."
            )
        weakref.finalize(self, unmap, self._files)

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        weights_sha256: str | None = None,
        direction: Direction = AS_STORED,
        info: SegmentInfo | None = None,
        digest: str | None = None,
    ) -> Self:
        """Read the counts of the segments; token ids are read when they are used.

        Args:
            path: The folder.
            weights_sha256: SHA-256 of the weights, if it is known.
            direction: How the task reads the pairs.
            info: The counts of its pairs and tokens as the task reads them, if they are known.
            digest: Digest of all segments, if it is known.

        Raises:
            DataError: If the folder has no segments, one is missing, truncated or not a segment, or they have
                other pairs than `info`.
        """
        files = set(path.glob("*.arrow"))
        if not files:
            raise DataError(f"{path}: no such token shard; `mnmt-data prepare` writes them.")
        expected = [segment_path(path, number) for number in range(len(files))]
        if missing := [file for file in expected if file not in files]:
            raise DataError(f"{missing[0]}: this segment of the shard is missing; prepare again.")
        segments = [SegmentFile.open(file) for file in expected]
        return cls(
            path, segments, weights_sha256=weights_sha256, direction=direction, info=info, digest=digest
        )

    def __len__(self) -> int:
        return self.info.pairs

    def lengths(self, rows: Rows) -> tuple[Rows, Rows]:
        """Return source and target lengths of the given rows: (rows,) each.

        Raises:
            DataError: If their checksums do not match.
        """
        src, tgt = np.empty(len(rows), dtype=np.int64), np.empty(len(rows), dtype=np.int64)
        for piece, positions, local in self._pieces(rows):
            src[positions], tgt[positions] = piece.lengths_of(local)
        return self._direction.lengths(src, tgt)

    def gather(self, rows: Rows) -> tuple[Ragged, Ragged]:
        """Return source and target token ids of the given rows, copied, in the same order.

        Raises:
            DataError: If their checksums do not match.
        """
        pieces = [(positions, *piece.take(local)) for piece, positions, local in self._pieces(rows)]
        src = Ragged.concatenate([piece for _, piece, _ in pieces])
        tgt = Ragged.concatenate([piece for _, _, piece in pieces])
        positions = np.concatenate([positions for positions, _, _ in pieces])
        if (np.diff(positions) < 0).any():
            back = np.argsort(positions, kind="stable")
            src, tgt = src.take(back), tgt.take(back)
        return self._direction.tokens(src, tgt)

    def sample(self, blocks: int) -> tuple[Ragged, Ragged]:
        """Return source and target token ids of evenly spaced blocks of `CHECKED_ROWS` rows.

        Only these blocks are read, and they are verified.

        Args:
            blocks: Number of blocks, at least 1; a shard with fewer gives all rows.

        Raises:
            DataError: If their checksums do not match.
        """
        pieces = [stretch.take(stretch.rows) for stretch in self._evenly_spaced(blocks)]
        return self._direction.tokens(*(Ragged.concatenate(side) for side in zip(*pieces, strict=True)))

    def sample_lengths(self, blocks: int) -> tuple[Rows, Rows]:
        """Return source and target lengths of the rows of `sample`: (rows,) each.

        Raises:
            DataError: If their checksums do not match.
        """
        pieces = [stretch.lengths_of(stretch.rows) for stretch in self._evenly_spaced(blocks)]
        src, tgt = (np.concatenate(side).astype(np.int64) for side in zip(*pieces, strict=True))
        return self._direction.lengths(src, tgt)

    def _evenly_spaced(self, blocks: int) -> Iterator[Stretch]:
        """Yield `blocks` blocks of rows; merge neighbouring blocks of a segment."""
        ends = offsets_of([-(file.info.pairs // -CHECKED_ROWS) for file in self._files])
        count = min(blocks, int(ends[-1]))
        places = (2 * np.arange(count) + 1) * int(ends[-1]) // (2 * count)
        numbers = np.searchsorted(ends, places, side="right") - 1
        local = places - ends[numbers]
        for start, stop in _cuts((np.diff(local) != 1) | (np.diff(numbers) != 0)):
            file, first, last = self._files[numbers[start]], int(local[start]), int(local[stop - 1])
            end = min((last + 1) * CHECKED_ROWS, file.info.pairs)
            yield Stretch(file=file, start=first * CHECKED_ROWS, stop=end)

    def loss_weights(self) -> NDArray[np.float32]:
        """Return the weight of each pair's loss, (pairs,); not 1 where pairs stand for a distribution.

        Raises:
            DataError: If the file is damaged or has another number of weights.
        """
        path = self.path / WEIGHTS
        if not path.exists():
            return np.ones(len(self), dtype=np.float32)
        if self._weights_sha256 is not None:
            check_file(path, sha256=self._weights_sha256)
        try:
            weights = np.load(path)
        except (OSError, ValueError, EOFError, TokenError):
            weights = np.empty(0)
        if weights.shape != (len(self),) or weights.dtype != np.float32:
            raise DataError(f"{path}: must hold {len(self)} float32 weights; remove it and prepare again.")
        return np.asarray(weights)

    def blocks(self, size: int = 2**16) -> Iterator[tuple[Ragged, Ragged]]:
        """Yield all pairs in order, `size` at a time."""
        for start in range(0, len(self), size):
            yield self.gather(np.arange(start, min(start + size, len(self))))

    def _pieces(self, rows: Rows) -> Iterator[Piece]:
        """Yield the pieces that together hold the rows."""
        if not len(rows) or (self._is_small and len(self._files) == 1):
            self._verify(self._files[: min(len(rows), 1)])
            yield map_segment(self._files[0]), np.arange(len(rows)), rows
            return
        order = np.argsort(rows, kind="stable")
        ordered = rows[order]
        numbers = np.searchsorted(self._starts, ordered, side="right") - 1
        local = ordered - self._starts[numbers]
        borders = np.diff(numbers) != 0
        stretches = borders | (np.diff(local // STRETCH_ROWS) != 0)
        is_dense = DENSE_ROWS * (1 + np.count_nonzero(stretches)) <= len(rows) and not self._is_small
        files = (self._files[number] for number in np.unique(numbers))
        self._verify(() if is_dense else files)
        if self._is_small:
            yield from self._mapped_pieces(order, local, numbers, borders, step=len(rows))
        elif is_dense:
            yield from self._stretches(order, local, numbers, stretches)
        else:
            yield from self._mapped_pieces(order, local, numbers, borders, step=ROWS_MAPPED)

    def _verify(self, files: Iterable[SegmentFile]) -> None:
        """Verify whole segments, each once, before single rows are read.

        In a very large shard each process would read everything to train on a part. There only the blocks of
        the requested rows are verified.

        Raises:
            DataError: If one has changed.
        """
        for file in files if self._size <= READ_WHOLE else ():
            file.verify()

    def _mapped_pieces(
        self, order: Rows, local: Rows, numbers: Rows, borders: NDArray[np.bool_], *, step: int
    ) -> Iterator[Piece]:
        """Yield pieces of mapped segments, of at most `step` rows."""
        for start, stop in _cuts(borders):
            for first in range(start, stop, step):
                rows = slice(first, min(first + step, stop))
                file = self._files[numbers[first]]
                yield map_segment(file, sparse=not self._is_small), order[rows], local[rows]
                self._unmap_after(file, rows.stop - first)

    def _stretches(
        self, order: Rows, local: Rows, numbers: Rows, borders: NDArray[np.bool_]
    ) -> Iterator[Piece]:
        """Yield stretches, which are read whole."""
        for start, stop in _cuts(borders):
            file = self._files[numbers[start]]
            stretch = Stretch(file=file, start=int(local[start]), stop=int(local[stop - 1]) + 1)
            yield stretch, order[start:stop], local[start:stop]

    def _unmap_after(self, file: SegmentFile, rows: int) -> None:
        """Count rows read from a large shard; unmap its segments after `ROWS_MAPPED`."""
        if not self._is_small:
            self._touched.add(file)
            self._rows_mapped += rows
            if self._rows_mapped >= ROWS_MAPPED:
                touched, self._touched, self._rows_mapped = self._touched, set(), 0
                unmap(touched)


def write_loss_weights(shard: Path, weights: NDArray[np.float64]) -> None:
    """Write the weight of each pair's loss, (pairs,), into a shard's folder (see `Shard.loss_weights`)."""
    with atomic_file(shard / WEIGHTS) as file:
        np.save(file, weights.astype(np.float32))


def segment_path(shard: Path, number: int) -> Path:
    """Return the path of a segment of a shard."""
    return shard / f"{number:05}.arrow"


def _cuts(borders: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) of consecutive pieces; `borders[i]` says that a piece ends after row i."""
    return pairwise([0, *(np.flatnonzero(borders) + 1).tolist(), len(borders) + 1])
