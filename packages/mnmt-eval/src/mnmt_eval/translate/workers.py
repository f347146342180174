"""Processes that search batches side by side."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from threading import Semaphore, Thread
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from mnmt_eval.errors import EvalError

Job = TypeVar("Job")
Result = TypeVar("Result")

_AHEAD = 4
"""Jobs per process that may be queued, running, or done before an earlier one is."""

_STOP_SECONDS = 1.0
"""Longest wait for the end of the thread that reads jobs."""


class ForkedWorkers(Generic[Job, Result]):
    """Processes forked from this one, so that a model that is loaded here is in memory once.

    They leave Ctrl-C to this process, and end when it does, however it ends.

    Args:
        count: The number of processes.
        start: A function that is called once in each process, with its number from 0, and returns the
            function that does the jobs.
    """

    def __init__(self, count: int, start: Callable[[int], Callable[[Job], Result]]) -> None:
        context = get_context("fork")
        self._idle: list[Connection] = []
        self._busy: dict[Connection, int] = {}
        self._processes: list[ForkProcess] = []
        self._queue: ReadAhead[Job] | None = None
        for number in range(count):
            ours, theirs = context.Pipe()
            self._idle.append(ours)
            arguments = (start, number, theirs, list(self._idle))
            process = context.Process(target=_work, args=arguments, daemon=True)
            process.start()
            theirs.close()
            self._processes.append(process)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._queue is not None:
            self._queue.stop()
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join()

    def map(self, jobs: Iterable[Job]) -> Iterator[Result]:
        """Yield the result of each job, in the jobs' order.

        Raises:
            EvalError: If a process was killed.
            Exception: The exception of a job; or that of `jobs`, after all results of earlier jobs.
        """
        results: dict[int, Result] = {}
        num_sent = num_yielded = 0
        more = True
        with ReadAhead(jobs, ahead=_AHEAD * len(self._processes)) as queue:
            self._queue = queue
            while more or num_yielded < num_sent:
                awaited = [*self._busy, queue.bell] if more and self._idle else [*self._busy]
                for ready in wait(awaited):
                    if isinstance(ready, Connection) and ready in self._busy:
                        results.update(self._receive(ready))
                    elif (job := queue.next()) is not None:
                        self._send(num_sent, job)
                        num_sent += 1
                    else:
                        more = False
                while num_yielded in results:
                    yield results.pop(num_yielded)
                    queue.release()
                    num_yielded += 1
        if queue.failure is not None:
            raise queue.failure

    def _send(self, number: int, job: Job) -> None:
        pipe = self._idle.pop()
        pipe.send(job)
        self._busy[pipe] = number

    def _receive(self, pipe: Connection) -> dict[int, Result]:
        """Return the result that has arrived, by the number of its job."""
        result, error = _answer(pipe)
        if error is not None:
            raise error
        self._idle.append(pipe)
        return {self._busy.pop(pipe): result}


def run_apart(function: Callable[[], Result]) -> Result:
    """Call a function in another process, so that this one starts no threads."""
    with ForkedWorkers[str, Result](1, lambda number: lambda job: function()) as workers:
        (result,) = workers.map(["the only job"])
    return result


class ReadAhead(Generic[Job]):
    """Jobs that a thread reads ahead, so that results do not wait for the next job to arrive.

    Args:
        jobs: The jobs; only the thread iterates over them.
        ahead: The number of jobs that may be taken before the first is released.
    """

    def __init__(self, jobs: Iterable[Job], *, ahead: int) -> None:
        self.bell, self._ringer = Pipe(duplex=False)
        """A pipe that can be read once for each job, and once more at the end."""
        self.failure: Exception | None = None
        """The exception that `jobs` ended with, if any."""
        self._jobs: deque[Job] = deque()
        self._room = Semaphore(ahead)
        self._stopped = False
        self._thread = Thread(target=self._take, args=(jobs,), daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Take no more jobs.

        A thread that is in the middle of C++ when Python ends would abort the process, so its end is awaited;
        but not for long, since it may be waiting for input that never comes.
        """
        self._stopped = True
        self._room.release()
        self._thread.join(timeout=_STOP_SECONDS)

    def next(self) -> Job | None:
        """Return the next job, once for each time that `bell` can be read; None at the end."""
        self.bell.recv_bytes()
        return self._jobs.popleft() if self._jobs else None

    def release(self) -> None:
        """Make room for another job."""
        self._room.release()

    def _take(self, jobs: Iterable[Job]) -> None:
        try:
            for job in jobs:
                self._room.acquire()
                if self._stopped:
                    return
                self._jobs.append(job)
                self._ringer.send_bytes(b"job")
        except Exception as error:
            self.failure = error
        self._ringer.send_bytes(b"end")


def _answer(pipe: Connection) -> Any:
    try:
        return pipe.recv()
    except (EOFError, ConnectionResetError):
        raise EvalError(
            "a process of `--jobs` was killed, perhaps for want of memory; take fewer, or a smaller `--beam`."
        ) from None


def _work(
    start: Callable[[int], Callable[[Any], Any]], number: int, pipe: Connection, others: Sequence[Connection]
) -> None:
    """Do the jobs that come through `pipe` until the process at its other end closes it or ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for other in others:
        other.close()  # a pipe closes only when every process has closed its end
    do = start(number)
    try:
        while True:
            pipe.send(_outcome(do, pipe.recv()))
    except (EOFError, OSError):
        return


def _outcome(do: Callable[[Any], Any], job: Any) -> tuple[Any, Exception | None]:
    try:
        return do(job), None
    except Exception as error:
        return None, error
