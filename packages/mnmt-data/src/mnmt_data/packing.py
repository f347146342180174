"""Packing.

Several sentence pairs in one row of a batch, one after the other, so that hardly anything is padding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mnmt_data.store.ragged import Ragged
from mnmt_data.stream.batch import PAD, Pairs

Rows = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class PackedBatch:
    """Sentence pairs in rows; the k-th pair of a row is segment k on both sides, and segment 0 is padding."""

    src: NDArray[np.int64]
    """(rows, src_len) source token ids."""

    src_segments: NDArray[np.int64]
    """(rows, src_len) which pair of its row each token belongs to, from 1; 0 is padding."""

    tgt: NDArray[np.int64]
    """(rows, tgt_len) target token ids."""

    tgt_segments: NDArray[np.int64]
    """(rows, tgt_len) the same of the target."""

    tasks: NDArray[np.int64]
    """(rows, pairs of a row) the task of each pair; -1 where a row has fewer."""

    loss_weights: NDArray[np.float32]
    """(rows, pairs of a row) the factor of each pair's loss; 0 where a row has fewer."""

    @property
    def num_tokens(self) -> int:
        """Target tokens, `</s>` included and padding not."""
        return int(np.count_nonzero(self.tgt_segments))

    @property
    def padding(self) -> float:
        """Share of the two tables that is padding."""
        cells = self.src.size + self.tgt.size
        return 1 - (int(np.count_nonzero(self.src_segments)) + self.num_tokens) / max(1, cells)


def pack(pairs: Pairs, rows: Rows, *, width: int) -> PackedBatch:
    """Lay the given pairs into rows of at most `width` source and `width` target tokens.

    The longest pair goes first, each into the fullest row that has room for it on both sides (best-fit
    decreasing).

    Raises:
        ValueError: If a pair is longer than `width` on a side.
    """
    src_lengths, tgt_lengths = pairs.src.lengths_of(rows), pairs.tgt.lengths_of(rows)
    longest = int(max(src_lengths.max(initial=0), tgt_lengths.max(initial=0)))
    if longest > width:
        raise ValueError(f"`width` must be at least the longest sentence ({longest}), but is {width}.")
    row_of, segment_of = _best_fit(src_lengths, tgt_lengths, width)
    shape = (int(row_of.max(initial=-1)) + 1, int(segment_of.max(initial=-1)) + 1)
    tasks, weights = np.full(shape, -1, dtype=np.int64), np.zeros(shape, dtype=np.float32)
    tasks[row_of, segment_of], weights[row_of, segment_of] = pairs.tasks[rows], pairs.loss_weights[rows]
    order = np.lexsort((segment_of, row_of))
    src, src_segments = _lay(pairs.src, rows[order], row_of[order], segment_of[order])
    tgt, tgt_segments = _lay(pairs.tgt, rows[order], row_of[order], segment_of[order])
    return PackedBatch(
        src=src,
        src_segments=src_segments,
        tgt=tgt,
        tgt_segments=tgt_segments,
        tasks=tasks,
        loss_weights=weights,
    )


def _best_fit(src_lengths: Rows, tgt_lengths: Rows, width: int) -> tuple[Rows, Rows]:
    """The row of each pair, and its number within the row."""
    count = len(src_lengths)
    row_of, segment_of, filled = (np.zeros(count, dtype=np.int64) for _ in range(3))
    src_room, tgt_room, used = np.full(count, width), np.full(count, width), 0
    for pair in np.argsort(-np.maximum(src_lengths, tgt_lengths), kind="stable"):
        room = np.minimum(src_room[:used] - src_lengths[pair], tgt_room[:used] - tgt_lengths[pair])
        room[room < 0] = width
        row = int(room.argmin()) if room.min(initial=width) < width else used
        used = max(used, row + 1)
        src_room[row] -= src_lengths[pair]
        tgt_room[row] -= tgt_lengths[pair]
        row_of[pair], segment_of[pair] = row, filled[row]
        filled[row] += 1
    return row_of, segment_of


def _lay(
    side: Ragged, rows: Rows, row_of: Rows, segment_of: Rows
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """One side's tokens and their segments, given the pairs in the order in which they lie."""
    taken = side.take(rows)
    lengths = taken.lengths
    widths = np.bincount(row_of, weights=lengths, minlength=int(row_of.max(initial=-1)) + 1).astype(np.int64)
    token_rows, starts = np.repeat(row_of, lengths), np.concatenate([[0], np.cumsum(widths)])
    columns = np.arange(len(taken.values)) - starts[token_rows]
    table = np.full((len(widths), int(widths.max(initial=0))), PAD, dtype=np.int64)
    segments = np.zeros_like(table)
    table[token_rows, columns] = taken.values
    segments[token_rows, columns] = np.repeat(segment_of + 1, lengths)
    return table, segments
