"""Training batches from several tasks in exact proportion, resumable anywhere; evaluation batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mnmt_data.draws import random_words, stream_key
from mnmt_data.errors import DataError
from mnmt_data.mixture import Mixture
from mnmt_data.pairs import Batch, Pairs
from mnmt_data.sampling import Sampler
from mnmt_data.shards import Shard
from mnmt_data.token_budget import check_pairs, cut_batches

__all__ = ["Batch", "BatchStream", "eval_batches"]

_BATCHES_PER_WINDOW = 32


def eval_batches(shard: Shard, *, batch_tokens: int) -> Iterator[Batch]:
    """Every pair once, sorted by target and then by source length, in batches of at most `batch_tokens`.

    Raises:
        DataError: if there are no pairs, or one is longer than `batch_tokens`.
    """
    check_pairs(shard, batch_tokens=batch_tokens)
    pairs = Pairs(src=shard.src, tgt=shard.tgt, tasks=np.zeros(len(shard), dtype=np.int64))
    for rows in cut_batches(shard.src.lengths, shard.tgt.lengths, batch_tokens=batch_tokens):
        yield pairs.batch(rows)


class BatchStream:
    """An infinite stream of training batches, a pure function of shards, mixture, budget and seed.

    Each position of the stream holds a pair of a task drawn with the mixture's exact weights (see `Sampler`).
    A window of consecutive positions, about 32 batches, is sorted by length, cut into batches of at most
    `batch_tokens` tokens, and yielded in random order; pairs of equal length stay in order.

    Args:
        shards: {task: its training pairs}, at least for every task of positive weight.
        mixture: the share of each task.
        batch_tokens: the most tokens in a batch: padded source and padded target together.
        seed: of the choice of tasks, the order of pairs and the order of batches.

    Raises:
        DataError: if a task of positive weight has no pairs, or one longer than `batch_tokens`.
        ValueError: if a task of positive weight has no shard.
    """

    def __init__(
        self, shards: Mapping[str, Shard], mixture: Mixture, *, batch_tokens: int, seed: int
    ) -> None:
        self._sampler = Sampler(mixture=mixture, num_rows=_num_rows(shards, mixture), seed=seed)
        self._shards = {task: shards[task] for task in self._sampler.num_rows}
        for shard in self._shards.values():
            check_pairs(shard, batch_tokens=batch_tokens)
        self._batch_tokens = batch_tokens
        self._window_size = _window_size(list(self._shards.values()), batch_tokens)
        self._start, self._index, self._counts = 0, 0, dict.fromkeys(self._shards, 0)
        self._window: _Window | None = None

    @property
    def tasks(self) -> tuple[str, ...]:
        """What `Batch.tasks` counts: the tasks of the mixture."""
        return self._sampler.mixture.tasks

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Batch:
        window = self._window or self._read_window()
        if self._index == len(window.batches):
            self._start, self._index = self._start + self._window_size, 0
            self._counts = {task: count + window.draws[task] for task, count in self._counts.items()}
            window = self._read_window()
        self._window, self._index = window, self._index + 1
        return window.pairs.batch(window.batches[self._index - 1])

    def state(self) -> dict[str, Any]:
        """Where the stream is: a dict of plain values whose size does not grow, for `restore`."""
        return {
            **self._identity(),
            "window_start": self._start,
            "window_counts": dict(self._counts),
            "batches_yielded": self._index,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Goes to where `state` was taken: the batches that follow are those that followed there.

        Raises:
            DataError: if the state is that of a stream with other data, weights, budget or seed.
        """
        for field, ours in self._identity().items():
            if state.get(field) != ours:
                raise DataError(
                    f"`{field}` of the saved stream is {state.get(field)}, but of this one {ours}."
                )
        self._start, self._index = state["window_start"], state["batches_yielded"]
        self._counts, self._window = dict(state["window_counts"]), None

    def _identity(self) -> dict[str, Any]:
        """What must agree for a saved position to mean the same."""
        sampler = self._sampler
        return {
            "seed": sampler.seed,
            "batch_tokens": self._batch_tokens,
            "weights": dict(sampler.mixture.weights),
            "num_rows": dict(sampler.num_rows),
        }

    def _read_window(self) -> _Window:
        tasks = self._sampler.tasks(self._start, self._window_size)
        draws = dict(zip(self.tasks, np.bincount(tasks, minlength=len(self.tasks)).tolist(), strict=True))
        rows = {task: self._sampler.rows(task, start, draws[task]) for task, start in self._counts.items()}
        pairs = Pairs.gather(self._shards, rows, tasks)
        batches = cut_batches(pairs.src.lengths, pairs.tgt.lengths, batch_tokens=self._batch_tokens)
        key = stream_key(self._sampler.seed, "batches", self._start)
        order = np.argsort(random_words(key, 0, len(batches)), kind="stable")
        return _Window(pairs=pairs, batches=[batches[i] for i in order], draws=draws)


@dataclass(frozen=True, kw_only=True)
class _Window:
    """A stretch of the stream, cut into batches."""

    pairs: Pairs
    batches: list[NDArray[np.int64]]
    draws: Mapping[str, int]


def _num_rows(shards: Mapping[str, Shard], mixture: Mixture) -> dict[str, int]:
    drawn = [task for task, weight in mixture.weights.items() if weight > 0]
    if missing := [task for task in drawn if task not in shards]:
        raise ValueError(f"`shards` must hold every task of positive weight, but lacks {', '.join(missing)}.")
    return {task: len(shards[task]) for task in drawn}


def _window_size(shards: list[Shard], batch_tokens: int) -> int:
    """Pairs in about 32 batches; exactly so if all pairs are of one length."""
    num_pairs = sum(len(shard) for shard in shards)
    num_tokens = sum(int(shard.src.lengths.sum() + shard.tgt.lengths.sum()) for shard in shards)
    return _BATCHES_PER_WINDOW * max(1, batch_tokens * num_pairs // max(1, num_tokens))
