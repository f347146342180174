"""Processes that search batches side by side."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.queues import SimpleQueue
from queue import Empty, Queue
from threading import Thread
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from mnmt_eval.errors import EvalError

Job = TypeVar("Job")
Result = TypeVar("Result")

_AHEAD = 4
"""Jobs per process that may be queued, running, or done before an earlier one is."""

_STOP_SECONDS = 1.0
"""Longest wait for the end of the thread that reads jobs."""

_work: list[Callable[[Any], Any]] = []
"""Does the jobs of this process, the last one."""


class ForkedWorkers(Generic[Job, Result]):
    """Processes forked from this one, so that a model that is loaded here is in memory once.

    They leave Ctrl-C to this process, and end when it does, however it ends.

    Args:
        count: The number of processes.
        start: A function that is called once in each process, with its number from 0, and returns the
            function that does the jobs.
    """

    def __init__(self, count: int, start: Callable[[int], Callable[[Job], Result]]) -> None:
        context, others = get_context("fork"), active_children()
        numbers: SimpleQueue[int] = context.SimpleQueue()
        for number in range(count):
            numbers.put(number)
        self._pool = ProcessPoolExecutor(count, context, _begin, (start, numbers))
        self._pool.submit(int)  # forks all of them, before there are threads
        self._processes = [process for process in active_children() if process not in others]
        self._futures: Queue[Future[Result] | None] = Queue(_AHEAD * count - 1)
        self._reader = Thread(target=self._submit, args=((),), daemon=True)
        self._is_stopped = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_stopped = True
        for process in self._processes:
            process.terminate()
        with suppress(Empty):
            while True:
                self._futures.get_nowait()
        # A thread that is in the middle of C++ when Python ends would abort the process; but it may be
        # waiting for input that never comes.
        if self._reader.is_alive():
            self._reader.join(timeout=_STOP_SECONDS)
        self._pool.shutdown(cancel_futures=True)

    def map(self, jobs: Iterable[Job]) -> Iterator[Result]:
        """Yield the result of each job, in the jobs' order; results do not wait for the next job to arrive.

        Raises:
            EvalError: If a process was killed.
            Exception: The exception of a job; or that of `jobs`, after all results of earlier jobs.
        """
        self._reader = Thread(target=self._submit, args=(jobs,), daemon=True)
        self._reader.start()
        while (future := self._futures.get()) is not None:
            try:
                result = future.result()
            except BrokenProcessPool:
                raise EvalError(
                    "a process of `--jobs` was killed, perhaps for want of memory; take fewer, or a smaller "
                    "`--beam`."
                ) from None
            yield result

    def _submit(self, jobs: Iterable[Job]) -> None:
        """Read the jobs and submit them."""
        try:
            for job in jobs:
                if self._is_stopped:
                    return
                self._futures.put(self._pool.submit(_run, job))
        except Exception as error:
            failed: Future[Result] = Future()
            failed.set_exception(error)
            self._futures.put(failed)
        self._futures.put(None)


def run_apart(function: Callable[[], Result]) -> Result:
    """Call a function in another process, so that this one starts no threads."""
    with ForkedWorkers[str, Result](1, lambda number: lambda job: function()) as workers:
        (result,) = workers.map(["the only job"])
    return result


def _begin(start: Callable[[int], Callable[[Any], Any]], numbers: SimpleQueue[int]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    Thread(target=_end_with_parent, daemon=True).start()
    _work.append(start(numbers.get()))


def _end_with_parent() -> None:
    """End this process when its parent has ended."""
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)


def _run(job: Any) -> Any:
    return _work[-1](job)
