"""Jobs that are taken from where they come while others are done."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from multiprocessing import Pipe
from threading import Semaphore, Thread
from types import TracebackType
from typing import Generic, Self, TypeVar

Job = TypeVar("Job")

_PATIENCE_SECONDS = 1.0


class Taking(Generic[Job]):
    """Takes jobs in a thread, so that results need not wait for a job that is yet to come.

    Args:
        jobs: Where they come from; taken from in that thread only.
        ahead: Jobs that may be taken before the first is finished.
    """

    def __init__(self, jobs: Iterable[Job], *, ahead: int) -> None:
        self.bell, self._ringer = Pipe(duplex=False)
        """Can be read once for each job, and once more at the end."""
        self.failure: Exception | None = None
        """What ended the jobs, if it was that."""
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
        self._thread.join(timeout=_PATIENCE_SECONDS)

    def next(self) -> Job | None:
        """The next job, once for each time that `bell` can be read; None at the end."""
        self.bell.recv_bytes()
        return self._jobs.popleft() if self._jobs else None

    def finished(self) -> None:
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
