"""A pool of worker processes on any machines that see a folder."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from mnmt_data.errors import DataError
from mnmt_data.prepare.cluster import Cluster
from mnmt_data.prepare.job_queue import LEADER, POLL_SECONDS, WORKER, JobQueue
from mnmt_data.store.lock import file_lock, is_locked, see_changes

MAX_LOST = 4
"""Jobs whose workers may be lost one after the other before none takes their place, unless a worker has done
something meanwhile or lived for a while."""

_LIVED_SECONDS = 60.0

_ORPHAN_SECONDS = 60.0
_SHUTDOWN_SECONDS = 10.0
_TEND_SECONDS = 1.0


@dataclass(frozen=True)
class SharedFuture:
    """The result of a job, sooner or later."""

    pool: SharedPool
    number: int

    def done(self) -> bool:
        """Return whether the job is done."""
        return self.pool.queue.is_done(self.number)

    def result(self) -> Any:
        """Return the result; until it is there, do jobs that nobody does.

        Raises:
            Exception: What the job raised.
        """
        while not self.done():
            self.pool.tend()
            if not self.pool.queue.work_on_next():
                time.sleep(POLL_SECONDS)
        return self.pool.queue.take_result(self.number)


class SharedPool:
    """Workers that a cluster starts, and this process with them.

    A job of the cluster whose workers are lost is replaced. This process does jobs too while it waits for
    one, so that the work goes on without any worker.

    Args:
        root: The folder of queues, which all machines see.
        cluster: Starts the workers.
        report: Called with a line about them.
        outputs: The folder that jobs write to.

    Raises:
        DataError: If the cluster refuses them.
    """

    def __init__(self, root: Path, cluster: Cluster, *, report: Callable[[str], None], outputs: Path) -> None:
        folder = root / secrets.token_hex(4)
        folder.mkdir(parents=True)
        self.queue = JobQueue(folder)
        self._cluster, self._report, self._outputs = cluster, report, outputs
        self._numbers = count()
        self._known: dict[str, float] = {}
        """{worker: when it was first seen}."""
        self._alive = 0
        self._ended = 0
        self._lost = 0
        self._done_by_others = 0
        self._tended = time.monotonic()
        self._stack = ExitStack()
        self._stack.callback(_remove_queues, root)
        self._stack.callback(cluster.stop)
        self._stack.enter_context(file_lock(folder / LEADER, name=folder))
        try:
            cluster.start(folder, cluster.jobs)
        except BaseException:
            self.shutdown()
            raise

    def submit(self, work: Callable[[Any], Any], job: object) -> SharedFuture:
        """Add a job."""
        future = SharedFuture(self, next(self._numbers))
        self.queue.put(future.number, work, job)
        return future

    def tend(self) -> None:
        """Look after the workers, at most once a second."""
        if time.monotonic() - self._tended < _TEND_SECONDS:
            return
        see_changes(self.queue.folder)
        workers = list(self.queue.folder.glob(f"*{WORKER}"))
        alive = {path.name for path in workers if is_locked(path)}
        if len(alive) != self._alive:
            self._report(f"workers: {len(alive)}")
        for name in self._known.keys() - alive:
            (self.queue.folder / name).unlink(missing_ok=True)
            self._replace(time.monotonic() - self._known.pop(name))
        # One that has no lock at the first look may be about to take it.
        for name in alive | {path.name for path in workers if path.exists()}:
            self._known.setdefault(name, time.monotonic())
        self._alive = len(alive)
        self._tended = time.monotonic()

    def _replace(self, lived: float) -> None:
        """Count a worker that lived for so many seconds; start a job in place of as many as a job has."""
        if lived > _LIVED_SECONDS or self.queue.done_by_others > self._done_by_others:
            self._lost, self._done_by_others = 0, self.queue.done_by_others
        self._lost, self._ended = self._lost + 1, self._ended + 1
        most = MAX_LOST * self._cluster.processes
        if self._lost <= most and self._ended % self._cluster.processes == 0:
            try:
                self._cluster.start(self.queue.folder, 1)
            except DataError as error:
                self._report(str(error))  # The work goes on without.
        if self._lost == most:
            self._report(
                f"{most} workers have ended without work; see the newest log in {self._cluster.logs}"
            )

    def catch_up(self) -> None:
        """See what workers of other machines have written."""
        for folder, _, _ in os.walk(self._outputs):
            see_changes(Path(folder))

    def shutdown(self) -> None:
        """End the workers, and remove the queue."""
        self._stack.close()


def wait_for_orphans(root: Path) -> None:
    """Wait for the end of the workers of an earlier call, and remove what that has left of its queue.

    They could else write what that call wanted into the folder of this one.

    Raises:
        DataError: If one does not end.
    """
    if (path := _wait_for_workers(root, _ORPHAN_SECONDS)) is not None:
        raise DataError(f"{path}: a worker of an earlier call has not ended; wait for it or stop it.")
    shutil.rmtree(root, ignore_errors=True)


def _remove_queues(root: Path) -> None:
    """Remove what is left of a queue, unless a worker is still at work: by its lock the next call sees it."""
    if _wait_for_workers(root, _SHUTDOWN_SECONDS) is None:
        shutil.rmtree(root, ignore_errors=True)


def _wait_for_workers(root: Path, seconds: float) -> Path | None:
    """Wait until the workers of all queues have ended; return the lock of one that has not, if any."""
    deadline = time.monotonic() + seconds
    while (path := next(filter(is_locked, root.glob(f"*/*{WORKER}")), None)) is not None:
        if time.monotonic() > deadline:
            return path
        time.sleep(POLL_SECONDS)
    return None
