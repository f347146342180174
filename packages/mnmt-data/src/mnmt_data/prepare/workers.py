"""Worker processes that take jobs in order, a few at a time."""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from threading import Event, Thread
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from mnmt_data.errors import DataError
from mnmt_data.readers.reader import BLOCK_PAIRS

STARTING_PAIRS = BLOCK_PAIRS
"""Pairs that this process works on before it starts others: a small study is done before they are up."""

_JOBS_PER_WORKER = 2
_LOOK_SECONDS = 1.0

Report = Callable[[str], None]
"""Takes a line about the work."""

Progress = Callable[[str, int], None]
"""Takes the name of a stage and the pairs that it has just done."""


class Job(Protocol):
    """Work that can be sent to a process."""

    def __len__(self) -> int:
        """Return the number of pairs to work on."""


AnyJob = TypeVar("AnyJob", bound=Job)
Result = TypeVar("Result")


class Promise(Protocol):
    """The result of a job, sooner or later."""

    def done(self) -> bool:
        """Return whether the job is done."""

    def result(self) -> Any:
        """Wait for the result and return it.

        Raises:
            Exception: What the job raised.
        """


class Pool(Protocol):
    """Processes that do jobs, on this machine or on others."""

    def submit(self, work: Callable[[Any], Any], job: Any) -> Promise:
        """Add a job."""

    def catch_up(self) -> None:
        """Let this machine see what jobs have written."""

    def shutdown(self) -> None:
        """End the processes; jobs that are not done are forgotten."""


class ProcessPool:
    """Processes of this machine, which end with this one."""

    def __init__(self, count: int) -> None:
        self._executor = ProcessPoolExecutor(
            count, mp_context=get_context("spawn"), initializer=_start_worker
        )

    def submit(self, work: Callable[[Any], Any], job: Any) -> Promise:
        """Add a job."""
        return self._executor.submit(work, job)

    def catch_up(self) -> None:
        """Do nothing, as a machine sees what it writes."""

    def shutdown(self) -> None:
        """End the processes; jobs that are not done are forgotten."""
        self._executor.shutdown(cancel_futures=True)


class Workers:
    """Runs jobs in `count` processes, or in this one where there is little to do.

    Args:
        count: Processes; as many as there are processors by default.
        open_pool: Starts the processes, when they are needed; by default those of this machine.
        report: Called with a line about the work.
        progress: Called with the name of a stage and the pairs that it has just done.
    """

    def __init__(
        self,
        count: int | None = None,
        *,
        open_pool: Callable[[], Pool] | None = None,
        report: Report = lambda line: None,
        progress: Progress = lambda stage, pairs: None,
    ) -> None:
        self.count = count or os.cpu_count() or 1
        self.report = report
        self.progress = progress
        self._open_pool = open_pool
        self._pool: Pool | None = None
        self._pairs = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def run(
        self,
        stage: str,
        work: Callable[[AnyJob], Result],
        jobs: Iterable[AnyJob],
        *,
        pairs_done: Callable[[], int] | None = None,
        report: bool = True,
    ) -> Iterator[tuple[AnyJob, Result]]:
        """Yield each job with its result, in order; at most two jobs per process are held.

        Args:
            stage: Name of the stage, for reports of its progress.
            work: Does a job.
            jobs: The jobs.
            pairs_done: Counts the pairs of the stage that are done by now, where jobs are long or of unknown
                length; by default they are those of the jobs that are done.
            report: Whether to report the pairs at the end.

        Raises:
            DataError: If a process was killed.
        """
        with StageProgress(stage, self, pairs_done) as counted:
            try:
                for job, result in self._results(work, jobs):
                    counted.add(len(job))
                    yield job, result
            except BrokenProcessPool:
                raise DataError(
                    "a worker process was killed, perhaps for want of memory; try again with fewer `--jobs`."
                ) from None
        if report:
            self.report(f"{stage}: {counted.pairs:,} pairs done")

    def _results(
        self, work: Callable[[AnyJob], Result], jobs: Iterable[AnyJob]
    ) -> Iterator[tuple[AnyJob, Result]]:
        queue: deque[tuple[AnyJob, Promise]] = deque()
        for job in jobs:
            queue.append((job, self._submit(work, job)))
            while len(queue) > _JOBS_PER_WORKER * self.count or (queue and queue[0][1].done()):
                yield _next_result(queue)
        while queue:
            yield _next_result(queue)
        if self._pool is not None:
            self._pool.catch_up()

    def _submit(self, work: Callable[[AnyJob], Result], job: AnyJob) -> Promise:
        self._pairs += len(job)
        is_alone = self.count == 1 and self._open_pool is None
        if is_alone or (self._pool is None and self._pairs <= STARTING_PAIRS):
            done: Future[Result] = Future()
            done.set_result(work(job))
            return done
        if self._pool is None:
            self._pool = self._open_pool() if self._open_pool else ProcessPool(self.count)
        return self._pool.submit(work, job)


class StageProgress:
    """Counts the pairs that a stage has done, and tells `Workers.progress` of them.

    Args:
        stage: Name of the stage.
        workers: Whose progress it is.
        pairs_done: Counts them; it is asked every second. Without it, `add` is told of each job.
    """

    def __init__(self, stage: str, workers: Workers, pairs_done: Callable[[], int] | None) -> None:
        self.pairs = 0
        self._stage, self._workers, self._pairs_done = stage, workers, pairs_done
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
            self._tell(pairs)

    def _look(self) -> None:
        assert self._pairs_done is not None
        while True:
            has_ended = self._ended.wait(_LOOK_SECONDS)
            self._tell(self._pairs_done() - self.pairs)
            if has_ended:
                return

    def _tell(self, pairs: int) -> None:
        self.pairs += pairs
        self._workers.progress(self._stage, pairs)


def _next_result(queue: deque[tuple[AnyJob, Promise]]) -> tuple[AnyJob, Any]:
    job, future = queue.popleft()
    return job, future.result()


def _start_worker() -> None:
    """Leave Ctrl-C to the parent, and end with it: a killed parent cannot tell its workers to stop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
