"""The stages of a preparation: their jobs in order, a few at a time, in this process or in workers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from threading import Event, Thread
from types import TracebackType
from typing import Self, TypeVar

from mnmt_data.jobs.queue import JobPool
from mnmt_data.readers.reader import BLOCK_PAIRS

STARTING_PAIRS = BLOCK_PAIRS
"""Pairs that this process does itself before it starts workers: a small study needs no others."""

_JOBS_PER_WORKER = 2
_LOOK_SECONDS = 1.0

Report = Callable[[str], None]
"""Takes a line about the work."""

Progress = Callable[[str, int], None]
"""Takes the name of a stage and the pairs that it has just done."""

AnyJob = TypeVar("AnyJob", bound=Sized)
Result = TypeVar("Result")


class Stages:
    """Runs the jobs of stages in workers, or in this process if there are few pairs.

    Args:
        count: Workers; without `open_pool`, this process does all jobs.
        open_pool: Starts the workers when they are needed.
        report: Called with a line about the work.
        progress: Called with the name of a stage and the pairs that it has just done.
    """

    def __init__(
        self,
        count: int = 1,
        *,
        open_pool: Callable[[], JobPool] | None = None,
        report: Report = lambda line: None,
        progress: Progress = lambda stage, pairs: None,
    ) -> None:
        self.count, self.report, self.progress = count, report, progress
        self._open_pool = open_pool
        self._pool: JobPool | None = None
        self._pairs = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.close()

    def run(
        self,
        stage: str,
        work: Callable[[AnyJob], Result],
        jobs: Iterable[AnyJob],
        *,
        pairs_done: Callable[[], int] | None = None,
        report: bool = True,
    ) -> Iterator[tuple[AnyJob, Result]]:
        """Yield each job with its result, in order; at most two jobs per worker are held.

        Args:
            stage: Name of the stage, for reports of its progress.
            work: Does a job.
            jobs: The jobs; the length of each is its number of pairs.
            pairs_done: Returns the pairs of the stage that are done so far, where jobs are long or of unknown
                length; by default the pairs of finished jobs are counted.
            report: Whether to report the pairs at the end.

        Raises:
            DataError: If workers are killed at the same job again and again.
        """
        with StageProgress(stage, self.progress, pairs_done) as counted:
            for job, result in self._results(work, jobs):
                counted.add(len(job))
                yield job, result
        if report:
            self.report(f"{stage}: {counted.pairs:,} pairs done")

    def _results(
        self, work: Callable[[AnyJob], Result], jobs: Iterable[AnyJob]
    ) -> Iterator[tuple[AnyJob, Result]]:
        waiting: deque[tuple[AnyJob, int]] = deque()
        pool: JobPool | None = None
        for job in jobs:
            if (pool := self._pool_for(job)) is None:
                yield job, work(job)
                continue
            waiting.append((job, pool.submit(work, job)))
            while len(waiting) > _JOBS_PER_WORKER * self.count or (waiting and pool.is_done(waiting[0][1])):
                job, number = waiting.popleft()
                yield job, pool.result(number)
        for job, number in waiting:
            assert pool is not None
            yield job, pool.result(number)
        if self._pool is not None:
            self._pool.see_outputs()

    def _pool_for(self, job: Sized) -> JobPool | None:
        """Return the workers; start them after `STARTING_PAIRS`, before which there are none."""
        self._pairs += len(job)
        if self._pool is None and self._open_pool is not None and self._pairs > STARTING_PAIRS:
            self._pool = self._open_pool()
        return self._pool


class StageProgress:
    """Counts the pairs that a stage has done.

    Args:
        stage: Name of the stage.
        progress: Called with it and the pairs that it has just done.
        pairs_done: Returns the pairs done so far, called every second; by default `add` counts jobs.
    """

    def __init__(self, stage: str, progress: Progress, pairs_done: Callable[[], int] | None) -> None:
        self.pairs = 0
        self._stage, self._progress, self._pairs_done = stage, progress, pairs_done
        self._ended = Event()
        self._thread = Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        if self._pairs_done is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._pairs_done is not None:
            self._thread.join()

    def add(self, pairs: int) -> None:
        """Count the pairs of a job that is done."""
        if self._pairs_done is None:
            self._count(pairs)

    def _look(self) -> None:
        assert self._pairs_done is not None
        while True:
            has_ended = self._ended.wait(_LOOK_SECONDS)
            self._count(self._pairs_done() - self.pairs)
            if has_ended:
                return

    def _count(self, pairs: int) -> None:
        self.pairs += pairs
        self._progress(self._stage, pairs)
