"""Training batches from several tasks in exact proportion, at any step of the stream; evaluation batches."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mnmt_data.counter_rng import random_words, stream_key
from mnmt_data.errors import DataError
from mnmt_data.store.shards import Shard
from mnmt_data.stream.batch import Batch, Corpus, Pairs
from mnmt_data.stream.batch_sampler import BatchSampler
from mnmt_data.stream.bucketing import batch_by_tokens, check_not_empty, check_pairs_fit
from mnmt_data.stream.hook import BatchHook
from mnmt_data.stream.mixture import Mixture, Schedule
from mnmt_data.stream.prefetch import WHOLE, PrefetchedWindow, Share, batch_window, prefetch_window

__all__ = ["Batch", "BatchStream", "eval_batches"]

Rows = NDArray[np.int64]

logger = logging.getLogger(__name__)

SAMPLE = 4096
"""Selected rows to sample, for mean lengths and for the fingerprint of an order."""

HOOK_SAMPLE = 512
"""Rows of a task to sample, at least, for mean lengths after a hook."""


def eval_batches(shard: Shard, *, batch_tokens: int) -> Iterator[Batch]:
    """Yield every pair once, sorted by target and then source length, in batches of at most `batch_tokens`.

    A longer pair is a batch by itself.

    Raises:
        DataError: If there are no pairs.
    """
    check_not_empty(shard)
    every = np.arange(len(shard))
    src, tgt = shard.gather(every)
    tasks, weights = np.zeros_like(every), shard.loss_weights()
    pairs = Pairs(src=src, tgt=tgt, tasks=tasks, loss_weights=weights, ids=every)
    for rows in batch_by_tokens(src.lengths, tgt.lengths, batch_tokens=batch_tokens):
        yield pairs.batch(rows)


class BatchStream:
    """An endless stream of training batches, a pure function of step, shards, schedule, budget and seed.

    Each pair's task is drawn with the exact weights (`TaskSampler`), and its row is the next of that task in
    shuffled epochs. The batch of a step does not depend on earlier reads or on the number of ranks: any step
    can be read directly, at the same cost.

    Args:
        shards: {task: its training pairs}, at least for every task of positive weight.
        mixture: The share of each task, or a schedule of shares.
        batch_tokens: Source and target tokens of a batch on average, padding left out.
        seed: Seed of the choice of tasks, the order of pairs and the order of batches.
        orders: {task: its rows, best first}, of which the share `keep` is drawn from.
        keep: The share of selected data in use, in (0, 1].
        hook: Changes the pairs of every batch.

    Raises:
        DataError: If a task of positive weight has no pairs, or one longer than `batch_tokens`.
        ValueError: If a task of positive weight has no shard.
    """

    def __init__(
        self,
        shards: Mapping[str, Corpus],
        mixture: Mixture | Schedule,
        *,
        batch_tokens: int,
        seed: int,
        orders: Mapping[str, Rows] | None = None,
        keep: float = 1.0,
        hook: BatchHook | None = None,
    ) -> None:
        self.hook = hook
        schedule = Schedule.constant(mixture) if isinstance(mixture, Mixture) else mixture
        if missing := [task for task in schedule.tasks_drawn if task not in shards]:
            lacks = ", ".join(missing)
            raise ValueError(f"`shards` must hold every task of positive weight, but lacks {lacks}.")
        self._shards = {task: shards[task] for task in schedule.tasks_drawn}
        for shard in self._shards.values():
            check_pairs_fit(shard, batch_tokens=batch_tokens)
        orders = orders or {}
        self.sampler = BatchSampler(
            schedule=schedule,
            infos={task: shard.info for task, shard in self._shards.items()},
            batch_tokens=batch_tokens,
            seed=seed,
            block_rows=_block_rows(self._shards),
            orders=orders,
            mean_tokens={
                task: self._mean_tokens(task, orders.get(task), keep, seed)
                for task in self._shards
                if hook or task in orders
            },
            keep=keep,
        )
        self._step = 0
        self._window: PrefetchedWindow | None = None

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks of the mixture, which `Batch.tasks` indexes."""
        return self.sampler.schedule.tasks

    def batch(self, step: int) -> Batch:
        """Return the batch of a step, from 0."""
        return self.share(step, WHOLE)[0]

    def share(self, step: int, share: Share) -> tuple[Batch, ...]:
        """Return a rank's part of a batch: `share.accumulation` pieces of nearly equal numbers of tokens.

        The pieces of all ranks together hold each pair of the batch once. If a batch has fewer pairs than
        pieces, the last pieces are empty.
        """
        parts, _ = self._read(step, share).parts(step)
        return parts

    def tokens(self, step: int, share: Share = WHOLE) -> tuple[int, int]:
        """Return source and target tokens of a whole batch over all ranks of `share`."""
        window = self._read(step, share)
        return window.tokens[step - window.first_step]

    def window(self, step: int, share: Share = WHOLE) -> PrefetchedWindow:
        """Read a rank's part of the window that holds the batch of a step."""
        return prefetch_window(self.sampler, self._shards, step, share, self.hook)

    def counts(self, step: int) -> dict[str, int]:
        """Return {task: pairs drawn by the batches before `step`}."""
        window = batch_window(self.sampler, self._shards, step, self.hook)
        in_batches = np.bincount(
            np.concatenate([np.empty(0, dtype=np.int64), *window.batches[: step - window.first_step]]),
            minlength=len(window.locations.tasks),
        ).astype(bool)
        in_window = np.bincount(window.locations.tasks[in_batches], minlength=len(self.tasks)).tolist()
        before = self.sampler.draws_before(step)
        return {task: before[task] + count for task, count in zip(self.tasks, in_window, strict=True)}

    def locations(self, step: int) -> list[tuple[str, int]]:
        """Return `(task, row of its shard)` of every pair of a batch."""
        window = batch_window(self.sampler, self._shards, step, self.hook)
        batch = window.batches[step - window.first_step]
        tasks, rows = window.locations.tasks[batch].tolist(), window.locations.rows[batch].tolist()
        return [(self.tasks[task], row) for task, row in zip(tasks, rows, strict=True)]

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Batch:
        batch = self.batch(self._step)
        self._step += 1
        return batch

    def state(self) -> dict[str, Any]:
        """Return the state for `restore`: a dict of plain values of constant size."""
        code = {"hook_code": self.hook.code} if self.hook else {}
        return {**self._identity(), **code, "data": self._digests, "step": self._step}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a state with the same batches as the saved stream.

        Raises:
            DataError: If the state is of a stream with other data, weights, budget or seed.
        """
        expected = self._identity()
        for name in (*expected, "block_rows", "hook"):  # absent where no shard is shuffled, or without a hook
            if state.get(name) != (value := expected.get(name)):
                raise DataError(
                    f"`{name}` of the saved stream is {state.get(name)}, but of this one {value}."
                )
        self._check_data(state.get("data", {}))
        if self.hook and state.get("hook_code") != self.hook.code:
            logger.warning(
                "%s has changed since the stream was saved; the batches may be others", self.hook.name
            )
        self._step = state["step"]

    def _check_data(self, saved: Mapping[str, str]) -> None:
        """Check that a saved stream read the same pairs, where checksums tell them."""
        for task, digest in self._digests.items():
            before = saved.get(task, "")
            if before.startswith("all") and before != digest:
                remedy = "restore it with the data it was saved with, or start a new stream"
                raise DataError(f"the saved stream read other pairs of {task}, of equal number; {remedy}.")

    @property
    def _digests(self) -> dict[str, str]:
        """{task: digest of all its pairs}, of those whose checksums prepared.json has."""
        shards = {task: shard for task, shard in self._shards.items() if isinstance(shard, Shard)}
        return {task: f"all {shard.digest}" for task, shard in shards.items() if shard.digest}

    def _identity(self) -> dict[str, Any]:
        """Return the values that must agree for a step to have the same batch."""
        sampler = self.sampler
        blocks = {"block_rows": dict(sampler.block_rows)} if sampler.block_rows else {}
        hook = {"hook": self.hook.name} if self.hook else {}
        return {
            "stream": 2,
            "seed": sampler.seed,
            "batch_tokens": sampler.batch_tokens,
            "schedule": [{**phase, "kept": sampler.keep} for phase in sampler.schedule.describe()],
            "num_rows": {task: info.pairs for task, info in sampler.infos.items()},
            "num_tokens": {task: info.src_tokens + info.tgt_tokens for task, info in sampler.infos.items()},
            "selected": {task: _digest(_spread(order, len(order))) for task, order in sampler.orders.items()},
            **blocks,
            **hook,
        }

    def _mean_tokens(self, task: str, order: Rows | None, keep: float, seed: int) -> float:
        """Estimate the mean number of tokens of a pair in use, as the hook changes it, from a sample."""
        corpus = self._shards[task]
        if order is None:
            rows = np.arange(0, corpus.info.pairs, max(1, corpus.info.pairs // HOOK_SAMPLE))
        else:
            rows = _spread(order, max(1, round(keep * len(order))))
        if self.hook is None:
            return float(np.add(*corpus.lengths(rows)).mean())
        rows = rows[:: max(1, len(rows) // HOOK_SAMPLE)]
        keys = random_words(stream_key(seed, "hook", task), 0, len(rows))
        src, tgt = self.hook(*corpus.gather(rows), [task] * len(rows), keys)
        return float((src.lengths + tgt.lengths).mean())

    def _read(self, step: int, share: Share) -> PrefetchedWindow:
        window = self._window
        if window is None or window.share != share or not window.holds(step):
            window = self._window = self.window(step, share)
        return window


def _block_rows(corpora: Mapping[str, Corpus]) -> dict[str, int]:
    """Return {task: consecutive rows to draw together} of shuffled shards."""
    shards = {task: corpus for task, corpus in corpora.items() if isinstance(corpus, Shard)}
    return {task: shard.block_rows for task, shard in shards.items() if shard.block_rows > 1}


def _spread(order: Rows, size: int) -> Rows:
    """Return a few thousand evenly spaced rows of the first `size` of an order."""
    return np.asarray(order[: size : max(1, size // SAMPLE)])


def _digest(rows: Rows) -> str:
    return blake2b(rows.astype("<i8").tobytes(), digest_size=8).hexdigest()
