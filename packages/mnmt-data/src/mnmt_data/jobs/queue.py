"""Queue of pickled jobs in a folder that machines share: a leader adds jobs, and workers do them.

Each job is a file, and each result too. A worker holds the lock of its job. Output files appear whole, and
every worker would write the same, so it is harmless if two do one job (where locks do not work between
machines).
"""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any

from mnmt_data.errors import DataError
from mnmt_data.jobs.workers import ASKED_TO_END, Crew
from mnmt_data.store.atomic_file import atomic_file
from mnmt_data.store.lock import file_lock, is_locked, see_changes

MAX_DEATHS = 5
"""Attempts at a job whose worker is killed each time, before the job fails."""

POLL_SECONDS = 0.05
MAX_POLL_SECONDS = 0.25
"""Longest pause of the leader; each look at a shared folder writes a file there."""
IDLE_SECONDS = 1.0
"""Longest pause of a worker without a job; frequent checks by many workers would load a file server."""
LEADER_SECONDS = 0.5
"""Seconds between two checks of the leader."""

ORPHAN_SECONDS = 60.0
"""How long a new leader waits until workers of an earlier leader have finished their jobs."""


class JobQueue:
    """Jobs in a folder, for the leader and the workers.

    Args:
        folder: The folder, on a disk that all machines share.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def clear(self, *, seconds: float = ORPHAN_SECONDS) -> None:
        """Remove the jobs of an earlier leader, after its workers have released them.

        Otherwise they could write the earlier leader's output into the folders of this one.

        Raises:
            DataError: If a worker still does one after `seconds` s.
        """
        for path in [*self.folder.glob("*.job"), *self.folder.glob("*.result")]:
            path.unlink(missing_ok=True)
        deadline = time.monotonic() + seconds
        while (lock := next(filter(is_locked, self.folder.glob("*.lock")), None)) is not None:
            if time.monotonic() > deadline:
                raise DataError(f"{lock}: a worker of an earlier call has not ended; wait for it or stop it.")
            time.sleep(POLL_SECONDS)
        self.remove()

    def remove(self) -> None:
        """Remove the folder, which makes the workers end."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def attempts(self) -> list[tuple[str, int]]:
        """Return the names of started jobs, each with a number that grows with its attempts."""
        return sorted((path.name, path.stat().st_size) for path in self.folder.glob("*.attempts"))

    def put(self, number: int, work: Callable[[Any], Any], job: object) -> None:
        """Add a job.

        Args:
            number: Its place in the order in which jobs are started.
            work: Function that does the job.
            job: The argument of `work`.
        """
        with atomic_file(self._path(number)) as file:
            pickle.dump((work, job), file)

    def is_done(self, number: int) -> bool:
        """Return whether a job has a result."""
        return self._path(number).with_suffix(".result").exists()

    def take_result(self, number: int) -> Any:
        """Return the result of a finished job, and remove its files.

        Raises:
            Exception: The exception of the job.
        """
        path = self._path(number)
        result, error = pickle.loads(path.with_suffix(".result").read_bytes())
        for ending in (".job", ".attempts", ".lock", ".result"):
            path.with_suffix(ending).unlink(missing_ok=True)
        if error is not None:
            raise error
        return result

    def work_on_next(self) -> bool:
        """Do the first free job; return whether there was one."""
        return any(_claim(path) for path in sorted(self.folder.glob("*.job")))

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:08}.job"


@dataclass(frozen=True)
class QueueWork:
    """The work of a worker process: the jobs of a queue, until its leader ends.

    Args:
        folder: The queue's folder.
        leader: The lock that the leader holds.
    """

    folder: Path
    leader: Path

    def __call__(self) -> int:
        """Do the jobs; return the exit status of the process."""
        for number in ASKED_TO_END:
            signal.signal(number, lambda signum, frame: sys.exit(128 + signum))
        if not is_locked(self.leader):
            return 0
        Thread(target=_end_with, args=(self.leader,), daemon=True).start()
        queue, pause = JobQueue(self.folder), POLL_SECONDS
        try:
            while self.folder.exists():
                if queue.work_on_next():
                    pause = POLL_SECONDS
                    continue
                with suppress(OSError):
                    see_changes(self.folder)
                time.sleep(pause)
                pause = min(2 * pause, IDLE_SECONDS)
        except SystemExit as end:
            return int(end.code or 0)
        return 0


class JobPool:
    """A queue with this process as leader, and its workers.

    Args:
        queue: The queue.
        crew: Starts and replaces the workers.
        outputs: Output folder of the jobs.

    Raises:
        DataError: If workers cannot be started.
    """

    def __init__(self, queue: JobQueue, crew: Crew, *, outputs: Path) -> None:
        self._queue, self._crew, self._outputs = queue, crew, outputs
        self._numbers = count()
        self._next_look = time.monotonic()
        queue.folder.mkdir(parents=True, exist_ok=True)
        try:
            self._tend()
        except BaseException:
            self.close()
            raise

    def submit(self, work: Callable[[Any], Any], job: object) -> int:
        """Add a job, and return its number."""
        number = next(self._numbers)
        self._queue.put(number, work, job)
        return number

    def is_done(self, number: int) -> bool:
        """Return whether a job has a result."""
        return self._queue.is_done(number)

    def result(self, number: int) -> Any:
        """Wait for the result of a job, and return it.

        Raises:
            DataError: If workers end repeatedly without doing a job.
            Exception: The exception of the job.
        """
        delay = POLL_SECONDS
        while not self._queue.is_done(number):
            self._tend()
            see_changes(self._queue.folder)
            time.sleep(delay)
            delay = min(2 * delay, MAX_POLL_SECONDS)
        return self._queue.take_result(number)

    def see_outputs(self) -> None:
        """Make files that workers of other machines have written visible on this machine."""
        for folder, _, _ in os.walk(self._outputs):
            see_changes(Path(folder))

    def close(self) -> None:
        """Kill the workers and remove the queue."""
        self._crew.workers.stop(signal.SIGKILL)
        self._queue.remove()

    def _tend(self) -> None:
        """Replace workers that have ended, at most once per `poll_seconds`."""
        if time.monotonic() >= self._next_look:
            self._crew.alive()
            self._crew.tend(self._crew.count, self._queue.attempts())
            self._next_look = time.monotonic() + self._crew.workers.poll_seconds


def _claim(path: Path) -> bool:
    """Do a job unless it is finished or claimed; return whether this process has done it."""
    if path.with_suffix(".result").exists():
        return False
    with suppress(TimeoutError), file_lock(path.with_suffix(".lock"), name=path, error=TimeoutError):
        if path.with_suffix(".result").exists() or not path.exists():
            return False
        _do(path)
        return True
    return False


def _do(path: Path) -> None:
    """Do a job and write its result or exception."""
    attempts = path.with_suffix(".attempts")
    before = attempts.read_text(encoding="utf-8") if attempts.exists() else ""
    attempts.write_text(f"{before}{socket.gethostname()}.{os.getpid()}\n", encoding="utf-8")
    result, error = None, None
    try:
        if (deaths := before.count("\n")) >= MAX_DEATHS:
            raise DataError(
                f"{deaths} worker processes were killed at the same job, perhaps because memory ran out; "
                "try again with fewer `--jobs`, or give each more memory."
            )
        work, job = pickle.loads(path.read_bytes())
        result = work(job)
    except Exception as mistake:
        error = _portable(mistake)
    except BaseException:
        attempts.write_text(before, encoding="utf-8")  # The job did not cause the end of its worker.
        raise
    with atomic_file(path.with_suffix(".result")) as file:
        pickle.dump((result, error), file)


def _portable(error: Exception) -> Exception:
    """Return an exception that can be pickled; unless it is a DataError, with its traceback as a note."""
    text = "".join(traceback.format_exception(error))
    if not isinstance(error, DataError):
        error.add_note(f"{socket.gethostname()}: {text}")
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(text)
    return error


def _end_with(leader: Path) -> None:
    """End this process when the leader has ended; files appear whole or not at all."""
    try:
        while is_locked(leader):
            time.sleep(LEADER_SECONDS)
    finally:
        os._exit(0)  # If the folder cannot be read (removed on NFS), there is no leader either.
