"""Jobs in a folder that several machines see: one process puts them there, and workers do them.

A job is a file, and so is its result. Who does a job holds its lock, which ends with the process: a job whose
worker was killed is free again. What a job writes appears whole and is the same whoever writes it, so that a
job may be done twice, as where locks do not hold between machines.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

from mnmt_data.errors import DataError
from mnmt_data.store.atomic_file import atomic_file
from mnmt_data.store.lock import file_lock, is_locked, see_changes

LEADER = "leader.lock"
"""The lock of the process that puts jobs into a queue; workers end with it."""

WORKER = ".worker"
"""Ending of the locks that workers hold as long as they live."""

MAX_ATTEMPTS = 5
"""How often a job is begun by processes that are killed."""

POLL_SECONDS = 0.1
_RETRY_SECONDS = 2.0
"""Seconds after which a job that another process does is looked at again."""

_LOOK_SECONDS = 0.5
"""Seconds between two looks at the leader."""

_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGUSR2)
"""Signals that ask a worker to end. Slurm sends the second 90 seconds before the time is up, as submitit
tells it to; submitit's own handler would raise an exception, which would be taken for the job's."""


class ClaimedError(Exception):
    """Another process does the job."""


class JobQueue:
    """The jobs in a folder, as those see them who put them there and those who do them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.done_by_others = 0
        """Jobs that other processes did, of those whose results were taken."""
        self._later: dict[Path, float] = {}

    def put(self, number: int, work: Callable[[Any], Any], job: object) -> None:
        """Add a job.

        Args:
            number: Its place in the order in which jobs are begun.
            work: Does it.
            job: What `work` is called with.
        """
        with atomic_file(self._path(number)) as file:
            pickle.dump((work, job), file)

    def is_done(self, number: int) -> bool:
        """Return whether a job has a result."""
        return self._path(number).with_suffix(".result").exists()

    def take_result(self, number: int) -> Any:
        """Return the result of a job that is done, and remove its files.

        Raises:
            Exception: What the job raised.
        """
        path = self._path(number)
        result, error, who = pickle.loads(path.with_suffix(".result").read_bytes())
        self.done_by_others += who != process_name()
        for ending in (".job", ".attempts", ".lock", ".result"):
            path.with_suffix(ending).unlink(missing_ok=True)
        if error is not None:
            raise error
        return result

    def work_on_next(self) -> bool:
        """Do the first job that nobody does; return whether there was one."""
        now = time.monotonic()
        jobs = sorted(self.folder.glob("*.job"))
        self._later = {path: until for path, until in self._later.items() if until > now}
        return any(self._work_on(path) for path in jobs if path not in self._later)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:08}.job"

    def _work_on(self, path: Path) -> bool:
        """Do a job, unless it is done or another process does it; return whether it was done here."""
        if path.with_suffix(".result").exists():
            return False
        try:
            with file_lock(path.with_suffix(".lock"), name=path, error=ClaimedError):
                if path.with_suffix(".result").exists() or not path.exists():
                    return False
                _do(path)
                return True
        except ClaimedError:
            self._later[path] = time.monotonic() + _RETRY_SECONDS
            return False


def _do(path: Path) -> None:
    """Do a job and write its result, or what it raises."""
    attempts = path.with_suffix(".attempts")
    before = attempts.stat().st_size if attempts.exists() else 0
    attempts.write_bytes(b"." * (before + 1))
    result, error = None, None
    try:
        if before == MAX_ATTEMPTS:
            raise DataError(
                f"{before} worker processes were killed at the same job, perhaps for want of memory; "
                "give each more of it."
            )
        work, job = pickle.loads(path.read_bytes())
        result = work(job)
    except Exception as mistake:
        error = _portable(mistake)
    except BaseException:
        attempts.write_bytes(b"." * before)  # The worker is asked to end, which is not the job's fault.
        raise
    with atomic_file(path.with_suffix(".result")) as file:
        pickle.dump((result, error, process_name()), file)


def _portable(error: Exception) -> Exception:
    """Return an exception as it can be pickled: with the traceback of a bug as a note."""
    text = "".join(traceback.format_exception(error))
    if not isinstance(error, DataError):
        error.add_note(f"{socket.gethostname()}: {text}")
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(text)
    return error


def process_name() -> str:
    """Return the machine and the number of this process."""
    return f"{socket.gethostname()}.{os.getpid()}"


def serve(folder: Path) -> None:
    """Do the jobs of a queue until its leader ends, as the whole work of a process."""
    for number in _ENDING_SIGNALS:
        signal.signal(number, lambda signum, frame: sys.exit(128 + signum))
    Thread(target=_end_with_leader, args=(folder,), daemon=True).start()
    queue = JobQueue(folder)
    if not is_locked(folder / LEADER):
        return
    with file_lock(folder / f"{process_name()}{WORKER}", name=folder, seconds=10):
        while True:
            if not queue.work_on_next():
                see_changes(folder)
                time.sleep(POLL_SECONDS)


def _end_with_leader(folder: Path) -> None:
    """End this process when nobody leads the queue any more; what it writes appears whole or not at all."""
    try:
        while is_locked(folder / LEADER):
            time.sleep(_LOOK_SECONDS)
    finally:
        os._exit(0)  # A folder that cannot be looked at, as on NFS when it has been removed, has no leader.
