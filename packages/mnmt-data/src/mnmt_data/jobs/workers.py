"""Crews of workers, and local workers: processes forked from a server that has loaded all modules."""

from __future__ import annotations

import multiprocessing
import multiprocessing.forkserver
import multiprocessing.resource_tracker
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from typing import Protocol

from mnmt_data.errors import DataError

RESEND_SECONDS = 0.5
"""Seconds after which a signal is sent again to workers that still run; a new one may have missed it."""
GRACE_SECONDS = 60.0
"""How long a worker may take to save its work after its parent process has ended."""
MAX_USELESS = 2
"""Workers that may end without progress, in addition to one per place, before the crew gives up."""

ASKED_TO_END = (signal.SIGTERM, signal.SIGUSR1)

Work = Callable[[], int]
"""The work of a worker process: a callable that can be pickled and returns the exit status."""


class Workers(Protocol):
    """Processes or Slurm jobs that claim work and do it."""

    poll_seconds: float
    """Seconds between two checks of the workers."""

    def alive(self) -> int:
        """Return the number of workers, including those that wait for a machine."""

    def start(self, count: int) -> None:
        """Start `count` workers."""

    def stop(self, signum: int) -> None:
        """End the workers with a signal: the leader's, or SIGKILL after an error or when all work is done."""

    def describe(self) -> str:
        """Return a hint at the workers' error messages."""


class Crew:
    """Replaces workers that end.

    Args:
        workers: The workers.
        count: Maximal number of workers at a time.
    """

    def __init__(self, workers: Workers, count: int) -> None:
        self.workers, self.count = workers, count
        self._alive = self._useless = 0
        self._progress: object = None

    def alive(self) -> int:
        """Return the number of workers, including those that wait for a machine."""
        alive = self.workers.alive()
        self._useless += max(0, self._alive - alive)
        self._alive = alive
        return alive

    def tend(self, demand: int, progress: object) -> None:
        """Start workers until there are `min(demand, count)`.

        Args:
            demand: Number of workers for which there is work.
            progress: Any value that changes when work is done.

        Raises:
            DataError: If workers end repeatedly without progress, or cannot be started.
        """
        if progress != self._progress:
            self._progress, self._useless = progress, 0
        if self._useless > self.count + MAX_USELESS:
            raise DataError(f"{self._useless} workers have ended without work; {self.workers.describe()}")
        if (missing := min(self.count, demand) - self._alive) > 0:
            self.workers.start(missing)
            self._alive += missing


class LocalWorkers:
    """Processes on this machine, which end with this one; a killed worker does not affect the others.

    Args:
        work: The work of each.
        count: Maximal number of workers at a time.
        preload: Modules that are imported before workers are forked.
        on_line: Called with each line that a worker writes to stderr; by default the line goes to this
            process's stderr.
    """

    poll_seconds = 0.1

    def __init__(
        self,
        work: Work,
        *,
        count: int,
        preload: Sequence[str] = (),
        on_line: Callable[[str], object] | None = None,
    ) -> None:
        self.work, self.count, self.preload = work, count, tuple(preload)
        self._lines = None if on_line is None else _LinePipe(on_line)
        self.exit_statuses: list[int] = []
        """Exit statuses of the workers in the order in which they ended; negative for a signal."""
        self._processes: dict[int, ForkServerProcess] = {}

    def alive(self) -> int:
        """Return the number of workers."""
        for place, process in list(self._processes.items()):
            if not process.is_alive():
                process.join()
                self.exit_statuses.append(process.exitcode or 0)
                del self._processes[place]
        if self._lines is not None:
            self._lines.forward()  # also those of workers that have just ended
        return len(self._processes)

    def start(self, count: int) -> None:
        """Start workers."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(self.preload))
        _start_forkserver()
        free = (place for place in range(self.count) if place not in self._processes)
        for place, _ in zip(free, range(count), strict=False):
            stderr = None if self._lines is None else self._lines.writer
            process = context.Process(target=_run, args=(self.work, place, stderr))
            process.start()  # a signal may come meanwhile; the new process then ends with this one
            self._processes[place] = process

    def stop(self, signum: int) -> None:
        """Send a signal, on which workers save their work and end, and wait for them."""
        # A terminal sends SIGINT to the workers too, and a second SIGINT would end them at once.
        passed_on = signal.SIGTERM if signum == signal.SIGINT else signum
        while self.alive():
            for process in self._processes.values():
                if process.is_alive() and process.pid is not None:
                    os.kill(process.pid, passed_on)
            for process in self._processes.values():
                process.join(RESEND_SECONDS)

    def describe(self) -> str:
        """Return a hint at the workers' error messages."""
        return "the lines above say why"


class _LinePipe:
    """A pipe that workers write their stderr to.

    Args:
        on_line: Called with each line.
    """

    def __init__(self, on_line: Callable[[str], object]) -> None:
        self.reader, self.writer = multiprocessing.Pipe(duplex=False)
        os.set_blocking(self.reader.fileno(), False)
        self.on_line, self._rest = on_line, b""

    def forward(self) -> None:
        """Pass on the lines that are complete."""
        with suppress(BlockingIOError):
            while chunk := os.read(self.reader.fileno(), 2**16):
                *lines, self._rest = (self._rest + chunk).split(b"\n")
                for line in lines:
                    self.on_line(line.decode(errors="replace"))


def num_cores() -> int:
    """Return the number of cores that this process may use."""
    if "SLURM_JOB_ID" in os.environ:
        return int(os.environ.get("SLURM_CPUS_PER_TASK", "1"))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _start_forkserver() -> None:
    """Start the process that forks workers, with the signals blocked that ask workers to end.

    A scheduler sends these to all processes of a job, and without the server exit statuses would be lost.
    Neither must Ctrl-C end it while it imports modules. One that comes meanwhile reaches this process
    afterwards.
    """
    multiprocessing.resource_tracker.ensure_running()  # its start would unblock the signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (*ASKED_TO_END, signal.SIGINT))
    try:
        multiprocessing.forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _run(work: Work, place: int, stderr: Connection | None) -> None:
    """Do the work in a worker process, with its place among the workers in LOCAL_RANK."""
    if stderr is not None:
        os.dup2(stderr.fileno(), 2)
    for number in ASKED_TO_END:
        signal.signal(number, signal.SIG_DFL)
    # The leader forwards Ctrl-C. Outside of `work`, a SIGINT would print a traceback.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (*ASKED_TO_END, signal.SIGINT))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ["LOCAL_RANK"] = str(place)
    sys.exit(work())


def _end_with_parent() -> None:
    """End this process when its parent has ended, so that a killed leader leaves no processes behind."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(GRACE_SECONDS)
        os._exit(1)
