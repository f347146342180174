"""Sentence pairs as token ids, and rectangular batches cut from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mnmt_data.shards import Ragged, Shard

PAD = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """Sentence pairs side by side, the shorter ones filled up with 0."""

    src: NDArray[np.int64]
    """(batch, src_len) source token ids."""

    tgt: NDArray[np.int64]
    """(batch, tgt_len) target token ids."""

    tasks: NDArray[np.int64]
    """(batch,) each pair's task as its index in `BatchStream.tasks`; 0 in evaluation."""

    @property
    def num_tokens(self) -> int:
        """Target tokens, `</s>` included and padding not."""
        return int(np.count_nonzero(self.tgt != PAD))


@dataclass(frozen=True, kw_only=True, eq=False)
class Pairs:
    """Any number of sentence pairs of any tasks."""

    src: Ragged
    tgt: Ragged
    tasks: NDArray[np.int64]
    """(pairs,) each pair's task."""

    @classmethod
    def gather(
        cls, shards: Mapping[str, Shard], rows: Mapping[str, NDArray[np.int64]], tasks: NDArray[np.int64]
    ) -> Pairs:
        """Reads pairs of several tasks and puts them into the order of `tasks`.

        Args:
            shards: {task: its pairs}.
            rows: {task: which of them}, by ascending index of the task.
            tasks: (pairs,) the index of the task whose next row stands at each place.
        """
        src = Ragged.concatenate([shards[task].src.take(chosen) for task, chosen in rows.items()])
        tgt = Ragged.concatenate([shards[task].tgt.take(chosen) for task, chosen in rows.items()])
        by_task = np.argsort(tasks, kind="stable")
        places = np.empty_like(by_task)
        places[by_task] = np.arange(len(by_task))
        return cls(src=src.take(places), tgt=tgt.take(places), tasks=tasks)

    def batch(self, rows: NDArray[np.int64]) -> Batch:
        """The given pairs, padded."""
        return Batch(
            src=self.src.padded(rows, pad=PAD), tgt=self.tgt.padded(rows, pad=PAD), tasks=self.tasks[rows]
        )
