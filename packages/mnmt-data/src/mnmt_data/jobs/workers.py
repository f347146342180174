"""Workers that are kept at work, and those of this machine: processes forked from one that has loaded all."""

from __future__ import annotations

import multiprocessing
import multiprocessing.forkserver
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing.context import ForkServerProcess
from typing import Protocol

from mnmt_data.errors import DataError

RESEND_SECONDS = 0.5
"""Seconds after which a signal is sent again to workers that have not ended; one may be too new to hear."""
GRACE_SECONDS = 60.0
"""How long a worker may take to save its work once the process that started it is gone."""
MAX_USELESS = 2
"""Workers that may end without work, beside one each, before no more are started."""

ASKED_TO_END = (signal.SIGTERM, signal.SIGUSR1)

Work = Callable[[], int]
"""The whole work of a worker, which can be pickled; returns the exit status of its process."""


class Workers(Protocol):
    """Processes or jobs of a cluster that claim work and do it."""

    poll_seconds: float
    """Seconds between two looks at them."""

    def alive(self) -> int:
        """Return how many there are, those included that wait for a machine."""

    def start(self, count: int) -> None:
        """Start `count` workers."""

    def stop(self, signum: int) -> None:
        """Handle the signal that ends their leader, or SIGKILL after an error or at the end of all work."""

    def describe(self) -> str:
        """Return where their errors are to be read."""


class Crew:
    """Starts workers in place of those that end.

    Args:
        workers: The workers.
        count: Workers at a time.
    """

    def __init__(self, workers: Workers, count: int) -> None:
        self.workers, self.count = workers, count
        self._alive = self._useless = 0
        self._progress: object = None

    def alive(self) -> int:
        """Return how many workers there are, those included that wait for a machine."""
        alive = self.workers.alive()
        self._useless += max(0, self._alive - alive)
        self._alive = alive
        return alive

    def tend(self, demand: int, progress: object) -> None:
        """Start workers until there are `demand`, or `count` if that is less.

        Args:
            demand: Workers for which there is something to do.
            progress: A value that changes with the work that is done.

        Raises:
            DataError: If workers end again and again without progress, or cannot be started.
        """
        if progress != self._progress:
            self._progress, self._useless = progress, 0
        if self._useless > self.count + MAX_USELESS:
            raise DataError(f"{self._useless} workers have ended without work; {self.workers.describe()}")
        if (missing := min(self.count, demand) - self._alive) > 0:
            self.workers.start(missing)
            self._alive += missing


class LocalWorkers:
    """Processes of this machine, which end with this one; one that is killed takes no other along.

    Args:
        work: What each does.
        count: Workers at a time.
        preload: Modules that workers are forked with.
    """

    poll_seconds = 0.1

    def __init__(self, work: Work, *, count: int, preload: Sequence[str] = ()) -> None:
        self.work, self.count, self.preload = work, count, tuple(preload)
        self.exit_statuses: list[int] = []
        """How the workers ended, in that order; below 0 if by a signal."""
        self._processes: dict[int, ForkServerProcess] = {}

    def alive(self) -> int:
        """Return how many workers there are."""
        for place, process in list(self._processes.items()):
            if not process.is_alive():
                process.join()
                self.exit_statuses.append(process.exitcode or 0)
                del self._processes[place]
        return len(self._processes)

    def start(self, count: int) -> None:
        """Start workers."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(self.preload))
        _start_forkserver()
        free = (place for place in range(self.count) if place not in self._processes)
        for place, _ in zip(free, range(count), strict=False):
            self._processes[place] = context.Process(target=_run, args=(self.work, place))
            self._processes[place].start()

    def stop(self, signum: int) -> None:
        """Pass on a signal, at which workers save their work and end, and wait for them."""
        # Workers have a terminal's SIGINT themselves, and a second ends them at once.
        passed_on = signal.SIGTERM if signum == signal.SIGINT else signum
        while self.alive():
            for process in self._processes.values():
                if process.is_alive() and process.pid is not None:
                    os.kill(process.pid, passed_on)
            for process in self._processes.values():
                process.join(RESEND_SECONDS)

    def describe(self) -> str:
        """Return where their errors are to be read."""
        return "the lines above say why"


def num_cores() -> int:
    """Return how many cores this process may use."""
    if "SLURM_JOB_ID" in os.environ:
        return int(os.environ.get("SLURM_CPUS_PER_TASK", "1"))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _start_forkserver() -> None:
    """Start the process that workers fork from, deaf to the signals that ask them to end.

    A scheduler sends them to all processes of a job. How workers end would be unknown without this one.
    """
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in ASKED_TO_END}
    try:
        multiprocessing.forkserver.ensure_running()
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _run(work: Work, place: int) -> None:
    """Do the work of a process, which finds its place among the others in LOCAL_RANK."""
    for number in ASKED_TO_END:
        signal.signal(number, signal.SIG_DFL)
    # The leader passes a Ctrl-C on. Outside of the work it would leave a traceback wherever it comes.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ["LOCAL_RANK"] = str(place)
    sys.exit(work())


def _end_with_parent() -> None:
    """End this process when its parent has ended, so that a killed leader leaves no process at work."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(GRACE_SECONDS)
        os._exit(1)
