"""Training batches from several tasks in exact proportion, at any step of the stream; evaluation batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mnmt_data.cutting import cut
from mnmt_data.draws import random_words, stream_key
from mnmt_data.errors import DataError
from mnmt_data.mixture import Mixture
from mnmt_data.packing import PackedBatch, pack
from mnmt_data.pairs import Addresses, Batch, Corpus, Pairs
from mnmt_data.plan import BatchPlan, Window
from mnmt_data.schedule import Schedule
from mnmt_data.shards import Shard
from mnmt_data.token_budget import check_pairs, cut_batches

__all__ = ["Batch", "BatchStream", "Share", "eval_batches"]

Rows = NDArray[np.int64]


def eval_batches(shard: Shard, *, batch_tokens: int) -> Iterator[Batch]:
    """Every pair once, sorted by target and then by source length, in batches of at most `batch_tokens`.

    Raises:
        DataError: if there are no pairs, or one is longer than `batch_tokens`.
    """
    check_pairs(shard, batch_tokens=batch_tokens)
    src, tgt = shard.gather(np.arange(len(shard)))
    ones = np.ones(len(shard), dtype=np.float32)
    pairs = Pairs(src=src, tgt=tgt, tasks=np.zeros(len(shard), dtype=np.int64), loss_weights=ones)
    for rows in cut_batches(src.lengths, tgt.lengths, batch_tokens=batch_tokens):
        yield pairs.batch(rows)


@dataclass(frozen=True, kw_only=True)
class Share:
    """One rank's part of every batch, in as many pieces as it accumulates gradients over.

    Raises:
        ValueError: if a number is out of its range.
    """

    rank: int = 0
    num_ranks: int = 1
    accumulation: int = 1

    def __post_init__(self) -> None:
        if self.num_ranks < 1 or self.accumulation < 1:
            raise ValueError("`num_ranks` and `accumulation` must be at least 1.")
        if not 0 <= self.rank < self.num_ranks:
            raise ValueError(f"`rank` must be in [0, {self.num_ranks}), but is {self.rank}.")


WHOLE = Share()


class BatchStream:
    """An endless stream of training batches, a pure function of step, shards, schedule, budget and seed.

    Every pair of a batch is of a task drawn with the exact weights (`TaskDraws`) and is the next of that
    task's rows in shuffled epochs. What step n yields does not depend on how the steps before were read, by
    how many ranks, or whether they were: any step can be asked for, at the same price.

    Args:
        shards: {task: its training pairs}, at least for every task of positive weight.
        mixture: the share of each task, or a schedule of shares.
        batch_tokens: source and target tokens of a batch on average, padding left out.
        seed: of the choice of tasks, the order of pairs and the order of batches.
        orders: {task: its rows, best first}; where given, the schedule's `kept` share of them is drawn from.

    Raises:
        DataError: if a task of positive weight has no pairs, or one longer than `batch_tokens`.
        ValueError: if a task of positive weight has no shard.
    """

    def __init__(
        self,
        shards: Mapping[str, Corpus],
        mixture: Mixture | Schedule,
        *,
        batch_tokens: int,
        seed: int,
        orders: Mapping[str, Rows] | None = None,
    ) -> None:
        schedule = Schedule.constant(mixture) if isinstance(mixture, Mixture) else mixture
        self._shards = {task: shards[task] for task in _drawn(shards, schedule)}
        for shard in self._shards.values():
            check_pairs(shard, batch_tokens=batch_tokens)
        infos = {task: shard.info for task, shard in self._shards.items()}
        self.plan = BatchPlan(
            schedule=schedule, infos=infos, batch_tokens=batch_tokens, seed=seed, orders=orders or {}
        )
        self._step = 0
        self._window: _Window | None = None

    @property
    def tasks(self) -> tuple[str, ...]:
        """What `Batch.tasks` counts: the tasks of the mixture."""
        return self.plan.schedule.tasks

    def batch(self, step: int) -> Batch:
        """The batch of a step, from 0."""
        return self.share(step, WHOLE)[0]

    def share(self, step: int, share: Share) -> tuple[Batch, ...]:
        """A rank's part of a batch: `share.accumulation` pieces of nearly equal numbers of tokens.

        The pieces of all ranks together hold the pairs of the batch, each once.

        Raises:
            ValueError: if the batch has fewer pairs than there are pieces.
        """
        window = self._read(step, share)
        return tuple(window.pairs.batch(rows) for rows in window.pieces[step - window.first_step])

    def packed(self, step: int, share: Share, *, width: int) -> tuple[PackedBatch, ...]:
        """As `share`, with several pairs in a row of at most `width` source and `width` target tokens.

        Raises:
            ValueError: if a sentence is longer than `width`, or there are fewer pairs than pieces.
        """
        window = self._read(step, share)
        pieces = window.pieces[step - window.first_step]
        return tuple(pack(window.pairs, rows, width=width) for rows in pieces)

    def counts(self, step: int) -> dict[str, int]:
        """{task: pairs drawn by the batches before `step`}."""
        window = _cut_window(self.plan, self._shards, step)
        drawn = np.bincount(
            np.concatenate([np.empty(0, dtype=np.int64), *window.batches[: step - window.first_step]]),
            minlength=len(window.addresses.tasks),
        ).astype(bool)
        here = np.bincount(window.addresses.tasks[drawn], minlength=len(self.tasks)).tolist()
        before = self.plan.draws_before(step)
        return {task: before[task] + count for task, count in zip(self.tasks, here, strict=True)}

    def addresses(self, step: int) -> list[tuple[str, int]]:
        """`(task, row of its shard)` of every pair of a batch."""
        window = _cut_window(self.plan, self._shards, step)
        batch = window.batches[step - window.first_step]
        tasks, rows = window.addresses.tasks[batch].tolist(), window.addresses.rows[batch].tolist()
        return [(self.tasks[task], row) for task, row in zip(tasks, rows, strict=True)]

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Batch:
        batch = self.batch(self._step)
        self._step += 1
        return batch

    def state(self) -> dict[str, Any]:
        """Where the stream is: a dict of plain values whose size does not grow, for `restore`."""
        return {**self._identity(), "step": self._step}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Goes to where `state` was taken: the batches that follow are those that followed there.

        Raises:
            DataError: if the state is that of a stream with other data, weights, budget or seed.
        """
        for name, ours in self._identity().items():
            if state.get(name) != ours:
                raise DataError(f"`{name}` of the saved stream is {state.get(name)}, but of this one {ours}.")
        self._step = state["step"]

    def _identity(self) -> dict[str, Any]:
        """What must agree for a step to mean the same."""
        plan = self.plan
        return {
            "stream": 2,
            "seed": plan.seed,
            "batch_tokens": plan.batch_tokens,
            "schedule": plan.schedule.describe(),
            "num_rows": {task: info.pairs for task, info in plan.infos.items()},
            "num_tokens": {task: info.src_tokens + info.tgt_tokens for task, info in plan.infos.items()},
            "selected": sorted(plan.orders),
        }

    def _read(self, step: int, share: Share) -> _Window:
        window = self._window
        if window is None or window.share != share or not window.holds(step):
            window = self._window = _read_window(self.plan, self._shards, step, share)
        return window


@dataclass(frozen=True, kw_only=True, eq=False)
class _CutWindow:
    """A window of the plan, cut into batches."""

    first_step: int
    addresses: Addresses
    src_lengths: Rows
    tgt_lengths: Rows
    loss_weights: NDArray[np.float32]
    batches: list[Rows]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Window:
    """What one rank needs of a window, in memory."""

    share: Share
    first_step: int
    pairs: Pairs
    pieces: list[list[Rows]]

    def holds(self, step: int) -> bool:
        """Whether the batch of a step is in it."""
        return 0 <= step - self.first_step < len(self.pieces)


def _cut_window(plan: BatchPlan, corpora: Mapping[str, Corpus], step: int) -> _CutWindow:
    window = plan.window(step)
    addresses = Addresses.merged(plan.schedule.tasks, window.tasks, window.rows)
    src_lengths, tgt_lengths = addresses.lengths(corpora)
    batches = cut(src_lengths, tgt_lengths, window.num_batches)
    order = np.argsort(random_words(stream_key(plan.seed, *window.key), 0, len(batches)), kind="stable")
    return _CutWindow(
        first_step=window.first_step,
        addresses=addresses,
        src_lengths=src_lengths,
        tgt_lengths=tgt_lengths,
        loss_weights=_loss_weights(window, plan.schedule.tasks),
        batches=[batches[number] for number in order],
    )


def _read_window(plan: BatchPlan, corpora: Mapping[str, Corpus], step: int, share: Share) -> _Window:
    window = _cut_window(plan, corpora, step)
    pieces = [_pieces(window, batch, share) for batch in window.batches]
    places = np.concatenate([piece for batch in pieces for piece in batch])
    src, tgt = window.addresses.read(corpora, places)
    pairs = Pairs(
        src=src, tgt=tgt, tasks=window.addresses.tasks[places], loss_weights=window.loss_weights[places]
    )
    numbers = iter(
        np.split(np.arange(len(places)), np.cumsum([len(p) for batch in pieces for p in batch])[:-1])
    )
    read = [[next(numbers) for _ in batch] for batch in pieces]
    return _Window(share=share, first_step=window.first_step, pairs=pairs, pieces=read)


def _pieces(window: _CutWindow, batch: Rows, share: Share) -> list[Rows]:
    """The pieces of a batch that are a rank's."""
    if share == WHOLE:
        return [batch]
    pieces = cut(window.src_lengths[batch], window.tgt_lengths[batch], share.num_ranks * share.accumulation)
    return [batch[piece] for piece in pieces[share.rank :: share.num_ranks]]


def _loss_weights(window: Window, tasks: tuple[str, ...]) -> NDArray[np.float32]:
    weights = np.array([window.phase.loss_weights.get(task, 1.0) for task in tasks], dtype=np.float32)
    return weights[window.tasks]


def _drawn(shards: Mapping[str, Corpus], schedule: Schedule) -> list[str]:
    """The tasks of positive weight in any phase."""
    drawn = [
        task for task in schedule.tasks if any(phase.mixture.weights[task] > 0 for phase in schedule.phases)
    ]
    if missing := [task for task in drawn if task not in shards]:
        raise ValueError(f"`shards` must hold every task of positive weight, but lacks {', '.join(missing)}.")
    return drawn
