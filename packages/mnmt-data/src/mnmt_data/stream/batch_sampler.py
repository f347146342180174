"""Choose the pairs of each batch of a stream, as a pure function of step and seed that reads no pair.

Every batch of a phase draws the same number of pairs, with `batch_tokens` tokens on average. So the step
determines the positions in the stream, and any batch is computed directly. A window of consecutive batches is
sorted by length before it is cut into batches (see `bucketing`), which needs only the lengths of its pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil

import numpy as np
from numpy.typing import NDArray

from mnmt_data.counter_rng import epoch_rows, stream_key
from mnmt_data.store.segments import SegmentInfo
from mnmt_data.stream.mixture import Phase, Schedule
from mnmt_data.stream.task_sampler import TaskSampler

Rows = NDArray[np.int64]

WINDOW_PAIRS = 2**15
"""Least pairs of a window, unless it would need more than `MOST_BATCHES`."""

MOST_BATCHES = 128
"""Most batches in a window."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Window:
    """Consecutive batches that are cut together."""

    first_step: int
    num_batches: int
    phase: Phase
    key: tuple[int | str, ...]
    """Labels of the window's random numbers."""

    tasks: Rows
    """(pairs,) the task of each pair, as an index into the schedule's tasks."""

    rows: Mapping[str, Rows]
    """{task: its rows, in the order of `tasks`}."""


@dataclass(frozen=True, kw_only=True)
class BatchSampler:
    """Samples the batches of a stream.

    Raises:
        ValueError: If a task of positive weight has no pairs, or its order lacks some.
    """

    schedule: Schedule
    infos: Mapping[str, SegmentInfo]
    """{task: counts of its pairs and tokens}, for every task of positive weight."""

    batch_tokens: int
    """Source and target tokens of a batch, on average, without padding."""

    seed: int
    """Seed of all draws."""

    block_rows: Mapping[str, int] = field(default_factory=dict)
    """{task: consecutive rows to draw together}, for shards that were shuffled when prepared."""

    orders: Mapping[str, Rows] = field(default_factory=dict)
    """{task: its rows, best first}, for data selection."""

    mean_tokens: Mapping[str, float] = field(default_factory=dict)
    """{task: mean tokens of a pair}, where pairs are selected or changed by a hook."""

    keep: float = 1.0
    """Share of the rows of `orders` in use, the best first."""

    def __post_init__(self) -> None:
        if not 0 < self.keep <= 1:
            raise ValueError(f"`keep` must be in (0, 1], but is {self.keep}.")
        for task, order in self.orders.items():
            pairs = self.infos[task].pairs if task in self.infos else len(order)
            if len(order) != pairs:
                raise ValueError(f"`orders` must have every row of {task} ({pairs}), but has {len(order)}.")

    def window(self, step: int) -> Window:
        """Return the window that holds the batch of a step.

        Raises:
            ValueError: If the step is negative.
        """
        if step < 0:
            raise ValueError(f"`step` must not be negative, but is {step}.")
        stretch = self._stretches[self.schedule.index(step)]
        first = (
            stretch.first_step
            + (step - stretch.first_step) // stretch.window_batches * stretch.window_batches
        )
        num_batches = min(stretch.window_batches, stretch.end_step - first)
        start = (first - stretch.first_step) * stretch.batch_pairs
        tasks = stretch.draws.tasks(start, num_batches * stretch.batch_pairs)
        return Window(
            first_step=first,
            num_batches=num_batches,
            phase=stretch.phase,
            key=("window", first),
            tasks=tasks,
            rows=self._rows(stretch, stretch.draws.before(start), tasks),
        )

    def draws_before(self, step: int) -> dict[str, int]:
        """Return {task: pairs drawn before the window that holds the batch of a step}."""
        stretch = self._stretches[self.schedule.index(step)]
        windows = (step - stretch.first_step) // stretch.window_batches
        in_phase = stretch.draws.before(windows * stretch.window_batches * stretch.batch_pairs)
        return dict(zip(self.schedule.tasks, (stretch.before + in_phase).tolist(), strict=True))

    def epochs(self, step: int) -> dict[str, float]:
        """Return {task: mean number of draws of each of its rows in use before a step}."""
        epochs = dict.fromkeys(self.schedule.tasks, 0.0)
        for stretch in self._stretches:
            pairs = stretch.batch_pairs * max(0, min(step, stretch.end_step) - stretch.first_step)
            for task, weight in stretch.phase.mixture.weights.items():
                if weight > 0:
                    epochs[task] += pairs * weight / self._rows_in_use(task)
        return epochs

    def batch_pairs(self, step: int) -> int:
        """Return the mean number of pairs of a batch in the window of a step."""
        return self._stretches[self.schedule.index(step)].batch_pairs

    def window_batches(self, step: int) -> int:
        """Return the largest number of batches of a window in the phase of a step."""
        return self._stretches[self.schedule.index(step)].window_batches

    def _rows(self, stretch: _Stretch, before: Rows, tasks: Rows) -> dict[str, Rows]:
        counts = np.bincount(tasks, minlength=len(self.schedule.tasks))
        rows = {}
        for index, task in enumerate(self.schedule.tasks):
            if counts[index]:
                draws = stretch.before[index] + before[index] + np.arange(counts[index])
                key, size = stream_key(self.seed, "rows", task, 0), self._rows_in_use(task)
                if task in self.orders:
                    rows[task] = self.orders[task][epoch_rows(draws, size, key)]
                else:
                    blocks = self.block_rows.get(task, 1)
                    rows[task] = epoch_rows(draws, size, key, block_rows=blocks)
        return rows

    @cached_property
    def _stretches(self) -> tuple[_Stretch, ...]:
        stretches: list[_Stretch] = []
        ends = [phase.step for phase in self.schedule.phases[1:]] + [2**62]
        for number, (phase, end) in enumerate(zip(self.schedule.phases, ends, strict=True)):
            stretches.append(self._stretch(number, phase, end, stretches[-1] if stretches else None))
        return tuple(stretches)

    def _stretch(self, number: int, phase: Phase, end: int, last: _Stretch | None) -> _Stretch:
        pairs = self._batch_pairs(phase)
        draws_in_phase = last.draws_in_phase if last else np.zeros(len(self.schedule.tasks), dtype=np.int64)
        return _Stretch(
            phase=phase,
            first_step=phase.step,
            end_step=end,
            batch_pairs=pairs,
            window_batches=min(MOST_BATCHES, max(1, ceil(WINDOW_PAIRS / pairs))),
            draws=TaskSampler(mixture=phase.mixture, seed=self.seed, labels=("tasks", number)),
            before=last.before + draws_in_phase if last else draws_in_phase,
        )

    def _rows_in_use(self, task: str) -> int:
        pairs = self._info(task).pairs
        return max(1, round(self.keep * pairs)) if task in self.orders else pairs

    def _info(self, task: str) -> SegmentInfo:
        if task not in self.infos or not self.infos[task].pairs:
            raise ValueError(
                f"`infos` must have pairs of every task of positive weight, but has none of {task}."
            )
        return self.infos[task]

    def _batch_pairs(self, phase: Phase) -> int:
        weights = {task: weight for task, weight in phase.mixture.weights.items() if weight > 0}
        tokens = sum(weight * self._mean_tokens(task) for task, weight in weights.items())
        return max(1, round(self.batch_tokens / max(tokens, 1)))

    def _mean_tokens(self, task: str) -> float:
        """Return the mean number of tokens of a pair in use."""
        info = self._info(task)
        return self.mean_tokens.get(task, (info.src_tokens + info.tgt_tokens) / info.pairs)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Stretch:
    """A phase, and its position in the stream."""

    phase: Phase
    first_step: int
    end_step: int
    batch_pairs: int
    window_batches: int
    draws: TaskSampler
    before: Rows
    """(tasks,) pairs of each task drawn before the phase."""

    @cached_property
    def draws_in_phase(self) -> Rows:
        """(tasks,) pairs of each task drawn in the phase; not for the last, which is endless."""
        return self.draws.before((self.end_step - self.first_step) * self.batch_pairs)
