"""Worker processes that take jobs in order, and how far a stage is."""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from threading import Thread
from types import TracebackType
from typing import Protocol, Self, TypeVar

from tqdm import tqdm

from mnmt_data.errors import DataError
from mnmt_data.readers.reader import BLOCK_PAIRS

STARTING_PAIRS = BLOCK_PAIRS
"""Pairs that are worked on before processes are started: a small study is done before they would be there."""

_JOBS_A_WORKER = 2


class Job(Protocol):
    """Something to do that can be sent to a process."""

    def __len__(self) -> int:
        """How many pairs it is about."""


SomeJob = TypeVar("SomeJob", bound=Job)
Result = TypeVar("Result")


class Workers:
    """Runs jobs in `count` processes, or in this one where there is little to do."""

    def __init__(self, count: int | None = None) -> None:
        self.count = count or os.cpu_count() or 1
        self._pool: ProcessPoolExecutor | None = None
        self._pairs = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def run(
        self, work: Callable[[SomeJob], Result], jobs: Iterable[SomeJob]
    ) -> Iterator[tuple[SomeJob, Result]]:
        """Yield each job with its result, in order; at most two jobs a process are held.

        Raises:
            DataError: If a process was killed.
        """
        waiting: deque[tuple[SomeJob, Future[Result]]] = deque()
        try:
            for job in jobs:
                waiting.append((job, self._submit(work, job)))
                while len(waiting) > _JOBS_A_WORKER * self.count or (waiting and waiting[0][1].done()):
                    yield _result(waiting)
            while waiting:
                yield _result(waiting)
        except BrokenProcessPool:
            raise DataError(
                "a worker process was killed, perhaps for want of memory; try again with fewer `--workers`."
            ) from None

    def _submit(self, work: Callable[[SomeJob], Result], job: SomeJob) -> Future[Result]:
        self._pairs += len(job)
        if self.count == 1 or (self._pool is None and self._pairs <= STARTING_PAIRS):
            done: Future[Result] = Future()
            done.set_result(work(job))
            return done
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                self.count, mp_context=get_context("spawn"), initializer=_start_worker
            )
        return self._pool.submit(work, job)


def _result(waiting: deque[tuple[SomeJob, Future[Result]]]) -> tuple[SomeJob, Result]:
    job, future = waiting.popleft()
    return job, future.result()


def _start_worker() -> None:
    """Leave Ctrl-C to the parent, and ends with it: a killed one cannot tell its workers to stop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


Report = Callable[[str], None]

LINE_SECONDS = 60


class Progress:
    """Counts the pairs that a stage has seen to."""

    def __init__(self, stage: str, report: Report) -> None:
        self._stage, self._report = stage, report
        self._pairs, self._told = 0, time.monotonic()
        self._bar = tqdm(desc=stage, unit=" pairs", unit_scale=True, disable=None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()
        if kind is None:
            self._report(f"{self._stage}: {self._pairs:,} pairs done")

    def add(self, pairs: int) -> None:
        """Count pairs that were worked on now."""
        self._pairs += pairs
        self._bar.update(pairs)
        if self._bar.disable and time.monotonic() - self._told > LINE_SECONDS:
            self._report(f"{self._stage}: {self._pairs:,} pairs")
            self._told = time.monotonic()
