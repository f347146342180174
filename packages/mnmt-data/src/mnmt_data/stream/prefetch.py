"""Windows of batches: sorted by length, cut, and read for one rank at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mnmt_data.counter_rng import random_order, random_words, stream_key
from mnmt_data.store.ragged import Ragged, offsets_of
from mnmt_data.stream.batch import Batch, Corpus, Pairs, RowLocations
from mnmt_data.stream.batch_sampler import BatchSampler, Window
from mnmt_data.stream.bucketing import split_evenly
from mnmt_data.stream.hook import BatchHook

Rows = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Share:
    """One rank's part of every batch, a piece for each accumulation of gradients.

    Raises:
        ValueError: If a number is out of its range.
    """

    rank: int = 0
    """Number of this process, from 0."""

    num_ranks: int = 1
    """Processes that share every batch."""

    accumulation: int = 1
    """Pieces of each process's part."""

    def __post_init__(self) -> None:
        if self.num_ranks < 1 or self.accumulation < 1:
            raise ValueError("`num_ranks` and `accumulation` must be at least 1.")
        if not 0 <= self.rank < self.num_ranks:
            raise ValueError(f"`rank` must be in [0, {self.num_ranks}), but is {self.rank}.")


WHOLE = Share()


@dataclass(frozen=True, kw_only=True, eq=False)
class BatchedWindow:
    """A window, cut into batches."""

    first_step: int
    locations: RowLocations
    src_lengths: Rows
    """(pairs,)"""

    tgt_lengths: Rows
    """(pairs,)"""

    loss_weights: NDArray[np.float32]
    """(pairs,) the weight of each pair's loss."""

    batches: list[Rows]
    """Positions in `locations` of the pairs of each batch."""

    changed: tuple[Ragged, Ragged] | None
    """Sources and targets as a hook made them of the pairs of `locations`."""

    @property
    def tokens(self) -> list[tuple[int, int]]:
        """Source and target tokens of each batch."""
        order = np.concatenate(self.batches)
        starts = offsets_of([len(batch) for batch in self.batches])[:-1]
        sides = self.src_lengths, self.tgt_lengths
        src, tgt = (np.add.reduceat(lengths[order], starts).tolist() for lengths in sides)
        return list(zip(src, tgt, strict=True))


@dataclass(frozen=True, kw_only=True, eq=False)
class PrefetchedWindow:
    """One rank's part of a window, in memory."""

    share: Share
    first_step: int
    pairs: Pairs
    """The pairs of all pieces."""

    pieces: list[list[slice]]
    """Rows of `pairs` by batch and piece."""

    tokens: list[tuple[int, int]]
    """Source and target tokens of each whole batch."""

    piece_tokens: Rows
    """(batches, accumulation, ranks, 2): source and target tokens of every piece of every rank."""

    def holds(self, step: int) -> bool:
        """Return whether the batch of a step is in the window."""
        return 0 <= step - self.first_step < len(self.pieces)

    def parts(self, step: int) -> tuple[tuple[Batch, ...], tuple[int, int]]:
        """Return the pieces of the batch of a step, and source and target tokens of the whole batch."""
        number = step - self.first_step
        return tuple(self.pairs.batch(rows) for rows in self.pieces[number]), self.tokens[number]


def batch_window(
    sampler: BatchSampler, corpora: Mapping[str, Corpus], step: int, hook: BatchHook | None = None
) -> BatchedWindow:
    """Cut the window that holds a step into batches; without a hook only lengths are read."""
    window = sampler.window(step)
    locations = RowLocations.merged(sampler.schedule.tasks, window.tasks, window.rows)
    changed = _change(hook, sampler, window, locations, corpora) if hook else None
    src_lengths, tgt_lengths = [side.lengths for side in changed] if changed else locations.lengths(corpora)
    batches = split_evenly(src_lengths, tgt_lengths, window.num_batches)
    order = random_order(stream_key(sampler.seed, *window.key), len(batches))
    return BatchedWindow(
        first_step=window.first_step,
        locations=locations,
        src_lengths=src_lengths,
        tgt_lengths=tgt_lengths,
        loss_weights=_loss_weights(window, sampler.schedule.tasks),
        batches=[batches[number] for number in order],
        changed=changed,
    )


def _change(
    hook: BatchHook,
    sampler: BatchSampler,
    window: Window,
    locations: RowLocations,
    corpora: Mapping[str, Corpus],
) -> tuple[Ragged, Ragged]:
    """Return the pairs of a window as a hook changes them, which takes them in one order on all ranks."""
    count = len(locations.tasks)
    src, tgt = locations.read(corpora, np.arange(count))
    keys = random_words(stream_key(sampler.seed, "hook", *window.key), 0, count)
    return hook(src, tgt, [locations.names[task] for task in locations.tasks.tolist()], keys)


def prefetch_window(
    sampler: BatchSampler,
    corpora: Mapping[str, Corpus],
    step: int,
    share: Share,
    hook: BatchHook | None = None,
) -> PrefetchedWindow:
    """Read a rank's part of the window that holds a step."""
    window = batch_window(sampler, corpora, step, hook)
    by_rank = [_pieces(window, batch, share) for batch in window.batches]
    pieces = [batch[share.rank :: share.num_ranks] for batch in by_rank]
    positions = np.concatenate([piece for batch in pieces for piece in batch])
    if window.changed:
        src, tgt = (side.take(positions) for side in window.changed)
    else:
        src, tgt = window.locations.read(corpora, positions)
    pairs = Pairs(
        src=src,
        tgt=tgt,
        tasks=window.locations.tasks[positions],
        loss_weights=window.loss_weights[positions],
        ids=positions,
    )
    return PrefetchedWindow(
        share=share,
        first_step=window.first_step,
        pairs=pairs,
        pieces=_consecutive(pieces),
        tokens=window.tokens,
        piece_tokens=_piece_tokens(window, by_rank).reshape(len(by_rank), -1, share.num_ranks, 2),
    )


def _piece_tokens(window: BatchedWindow, pieces: list[list[Rows]]) -> Rows:
    """Return source and target tokens of each piece of each batch, (pieces, 2)."""
    every = [piece for batch in pieces for piece in batch]
    order, ends = np.concatenate(every), offsets_of([len(piece) for piece in every])
    sides = [offsets_of(lengths[order])[ends] for lengths in (window.src_lengths, window.tgt_lengths)]
    before = np.stack(sides, axis=1)
    return before[1:] - before[:-1]


def _consecutive(pieces: list[list[Rows]]) -> list[list[slice]]:
    """Return the slices of the pieces after concatenation."""
    ends = offsets_of([len(piece) for batch in pieces for piece in batch]).tolist()
    parts = (slice(start, end) for start, end in pairwise(ends))
    return [[next(parts) for _ in batch] for batch in pieces]


def _pieces(window: BatchedWindow, batch: Rows, share: Share) -> list[Rows]:
    """Return the pieces of a batch; pieces that ranks compute at the same time are adjacent."""
    if share == WHOLE:
        return [batch]
    num_pieces = share.num_ranks * share.accumulation
    pieces = split_evenly(window.src_lengths[batch], window.tgt_lengths[batch], min(num_pieces, len(batch)))
    pieces += [np.empty(0, dtype=np.int64)] * (num_pieces - len(pieces))
    return [batch[piece] for piece in pieces]


def _loss_weights(window: Window, tasks: tuple[str, ...]) -> NDArray[np.float32]:
    weights = np.array([window.phase.loss_weights.get(task, 1.0) for task in tasks], dtype=np.float32)
    return weights[window.tasks]
