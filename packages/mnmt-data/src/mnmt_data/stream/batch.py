"""Sentence pairs as token ids, and padded batches of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mnmt_data.store.ragged import Ragged
from mnmt_data.store.segments import SegmentInfo
from mnmt_data.stream.sorting import order_by

PAD = 0

Rows = NDArray[np.int64]


class Corpus(Protocol):
    """Tokenised pairs that can be read in any order, such as a `Shard`."""

    @property
    def info(self) -> SegmentInfo:
        """Counts of its pairs and tokens."""

    def lengths(self, rows: Rows) -> tuple[Rows, Rows]:
        """Return source and target lengths of the given rows."""

    def gather(self, rows: Rows) -> tuple[Ragged, Ragged]:
        """Return source and target token ids of the given rows."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """Sentence pairs, padded with 0."""

    src: NDArray[np.int64]
    """(batch, src_len) source token ids."""

    tgt: NDArray[np.int64]
    """(batch, tgt_len) target token ids."""

    tasks: NDArray[np.int64]
    """(batch,) each pair's task, an index into `BatchStream.tasks`; 0 in evaluation."""

    loss_weights: NDArray[np.float32]
    """(batch,) the weight of each pair's loss: 1, except with explicit scalarization, and in test sets whose
    pairs stand for a distribution."""

    ids: NDArray[np.int64]
    """(batch,) a number of each pair, unique within a step over all ranks; in evaluation its row."""

    @property
    def num_tokens(self) -> int:
        """Target tokens with `</s>`, without padding."""
        return int(np.count_nonzero(self.tgt != PAD))

    @property
    def weighted_tokens(self) -> float:
        """Target tokens, weighted by `loss_weights`."""
        tokens = np.count_nonzero(self.tgt != PAD, axis=1)
        return float(tokens @ self.loss_weights.astype(np.float64))

    @property
    def padding(self) -> float:
        """Fraction of padding in `src` and `tgt` together."""
        cells = self.src.size + self.tgt.size
        return 1 - (int(np.count_nonzero(self.src != PAD)) + self.num_tokens) / max(1, cells)


@dataclass(frozen=True, kw_only=True, eq=False)
class Pairs:
    """Sentence pairs of any tasks, not padded."""

    src: Ragged
    tgt: Ragged
    tasks: Rows
    """(pairs,) each pair's task."""

    loss_weights: NDArray[np.float32]
    """(pairs,) the weight of each pair's loss."""

    ids: Rows
    """(pairs,) numbers for `Batch.ids`."""

    def batch(self, rows: Rows | slice) -> Batch:
        """Return the given pairs, padded and copied."""
        return Batch(
            src=self.src.padded(rows, pad=PAD),
            tgt=self.tgt.padded(rows, pad=PAD),
            tasks=self.tasks[rows].copy(),
            loss_weights=self.loss_weights[rows].copy(),
            ids=self.ids[rows].copy(),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class RowLocations:
    """The task and the row of each of several pairs."""

    names: Sequence[str]
    """The names of the tasks, which `tasks` indexes."""

    tasks: Rows
    """(pairs,)"""

    rows: Rows
    """(pairs,) row in the corpus of the task."""

    @classmethod
    def merged(cls, names: Sequence[str], tasks: Rows, rows: Mapping[str, Rows]) -> RowLocations:
        """Merge each task's rows, {task: (its pairs,)}, in the order of `tasks`."""
        merged = np.empty(len(tasks), dtype=np.int64)
        for index, name in enumerate(names):
            if name in rows:
                merged[tasks == index] = rows[name]
        return cls(names=names, tasks=tasks, rows=merged)

    def lengths(self, corpora: Mapping[str, Corpus]) -> tuple[Rows, Rows]:
        """Return source and target lengths: (pairs,) each."""
        src, tgt = np.empty(len(self.tasks), dtype=np.int64), np.empty(len(self.tasks), dtype=np.int64)
        for name, positions in self._by_task():
            src[positions], tgt[positions] = corpora[name].lengths(self.rows[positions])
        return src, tgt

    def read(self, corpora: Mapping[str, Corpus], positions: Rows) -> tuple[Ragged, Ragged]:
        """Read source and target token ids of the pairs at the given positions."""
        selected = RowLocations(names=self.names, tasks=self.tasks[positions], rows=self.rows[positions])
        by_task = selected._by_task()
        if not by_task:
            return Ragged.from_rows([]), Ragged.from_rows([])
        parts = [corpora[name].gather(selected.rows[positions]) for name, positions in by_task]
        back = np.empty(len(positions), dtype=np.int64)
        back[np.concatenate([positions for _, positions in by_task])] = np.arange(len(positions))
        src, tgt = (Ragged.concatenate([part[side] for part in parts]).take(back) for side in (0, 1))
        return src, tgt

    def _by_task(self) -> list[tuple[str, Rows]]:
        """Return `(task, positions)` of every task that occurs, sorted by row to read memory in order."""
        order, ends = order_by(self.tasks, self.rows), np.cumsum(np.bincount(self.tasks))
        positions = np.split(order, ends[:-1])
        return [(name, part) for name, part in zip(self.names, positions, strict=False) if len(part)]
