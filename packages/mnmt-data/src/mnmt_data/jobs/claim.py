"""Claims of a job that has a folder: a lock that ends with its process, and a heartbeat for other machines.

The lock decides which process does a job. The heartbeat shows the job's progress. It also protects against
machines between which locks do not work: a job with a fresh heartbeat of another machine is not claimed.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from mnmt_data.errors import DataError
from mnmt_data.store.atomic_file import write_json
from mnmt_data.store.json_lines import read_json
from mnmt_data.store.lock import file_lock, is_locked

LOCK = ".lock"
"""Name of the lock in a job's folder."""
LOCK_SECONDS = 0.5
"""How long to wait for a lock: other processes hold it for a moment when they check whether it is free."""
HEARTBEAT = "heartbeat.json"
PERIOD = 10.0
"""Most seconds from one heartbeat to the next."""
FIRST_PERIOD, GROWTH = 1.0, 1.1
"""Seconds from the first heartbeat to the second, and the growth from one such period to the next."""
DEAD_AFTER = 60.0
"""Seconds without a heartbeat after which a process of another machine counts as dead."""
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, kw_only=True)
class Heartbeat:
    """The content of heartbeat.json: the process that does a job, and its progress."""

    host: str
    """Name of the machine."""
    pid: int
    """The process, on that machine."""
    boot: str | None = None
    """Kernel's boot id, which distinguishes machines with the same name; None if the system has none."""
    time: str
    """When this was written, in UTC."""
    step: int
    """Number of finished steps."""
    steps: int
    """Total number of steps."""
    loss: float | None = None
    """The newest training loss, nats per target token; None before the first."""
    seconds_left: float | None = None
    """Seconds until the last step, at the speed since its process began; None while unknown."""
    phase: str | None = None
    """Current activity before the first step, such as compiling; None after that."""

    @property
    def is_here(self) -> bool:
        """Whether it was written on this machine since the last boot."""
        return (self.host, self.boot) == (socket.gethostname(), _boot())

    @property
    def age(self) -> float:
        """Seconds since it was written; negative if the clock of its machine is ahead."""
        return (_now() - datetime.fromisoformat(self.time)).total_seconds()

    @property
    def is_fresh(self) -> bool:
        """Whether it was renewed in the last minute, provided that the clocks agree."""
        return abs(self.age) < DEAD_AFTER


def read_heartbeat(folder: Path) -> Heartbeat | None:
    """Return the newest heartbeat of a job, or None if there is none, e.g. because the job has ended."""
    try:
        return Heartbeat(**read_json(folder / HEARTBEAT))
    except (DataError, TypeError, OSError):
        return None


def is_alive(folder: Path) -> bool:
    """Return whether a process works on a job.

    Processes of this machine are looked up; those of other machines count as alive while their heartbeat is
    fresh.
    """
    beat = read_heartbeat(folder)
    if beat is None:
        return is_locked(folder / LOCK)  # It has just started.
    if not beat.is_here:
        return beat.is_fresh
    # A suspended process writes no heartbeat but holds the lock; another process with a reused id does not.
    return _exists(beat.pid) and (beat.is_fresh or is_locked(folder / LOCK))


def is_free(folder: Path) -> bool:
    """Return whether a job can be claimed.

    After a process of another machine is killed, the job stays claimed until its heartbeat is a minute old.
    """
    return _other_machine(folder) is None and not is_locked(folder / LOCK)


@contextmanager
def claim(
    folder: Path, *, error: type[Exception] = DataError, seconds: float = LOCK_SECONDS
) -> Iterator[None]:
    """Hold the claim of a job until the block or the process ends, even if the process is killed.

    Args:
        folder: The job's folder; created if it does not exist.
        error: Type of the exception to raise.
        seconds: Maximal time to wait for the lock.

    Raises:
        DataError: If another process holds the claim, or one of another machine did less than a minute ago.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with file_lock(folder / LOCK, name=folder, error=error, seconds=seconds):
        if (beat := _other_machine(folder)) is not None:
            raise error(
                f"{folder}: was claimed on {beat.host} (process {beat.pid}) {beat.age:.0f} s ago; if that "
                f"was killed, try again in {DEAD_AFTER - beat.age:.0f} s; if not, locks do not hold between "
                "the machines"
            )
        yield


class HeartbeatWriter:
    """Renews the heartbeat of a job from a thread; `close` removes it.

    Args:
        folder: The job's folder.
        step: Number of finished steps.
        steps: Total number of steps.
        clock: Returns the time in seconds.
    """

    def __init__(
        self, folder: Path, *, step: int = 0, steps: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.folder, self.step, self.steps = folder, step, steps
        self.loss: float | None = None
        self.phase: str | None = None
        self._clock = clock
        self._lock = threading.Lock()
        self._first: tuple[int, float] | None = None
        self._ended = threading.Event()
        self.renew()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._thread.start()

    def update(self, step: int) -> None:
        """Set the number of finished steps; the speed leaves out the first step, which may compile."""
        self.step, self.phase = step, None
        if self._first is None:
            self._first = step, self._clock()

    def announce(self, phase: str) -> None:
        """Write a heartbeat with an activity that precedes the first step."""
        self.phase = phase
        self.renew()

    def renew(self) -> None:
        """Write the heartbeat."""
        beat = Heartbeat(
            host=socket.gethostname(),
            boot=_boot(),
            pid=os.getpid(),
            time=_now().isoformat(timespec="seconds"),
            step=self.step,
            steps=self.steps,
            loss=self.loss,
            seconds_left=self._seconds_left(),
            phase=self.phase,
        )
        # A full disk must not end the job; its next checkpoint may find room.
        with self._lock, suppress(OSError):
            write_json(self.folder / HEARTBEAT, asdict(beat), end="")

    def close(self) -> None:
        """End the thread; remove the heartbeat and partial files of killed processes."""
        self._ended.set()
        self._thread.join()
        for path in (self.folder / HEARTBEAT, *self.folder.glob(f".{HEARTBEAT}.*")):
            path.unlink(missing_ok=True)

    def _seconds_left(self) -> float | None:
        """Return the seconds until the last step at the speed since the first; None before the second."""
        if self._first is None or self.step <= self._first[0]:
            return None
        step, since = self._first
        return round((self._clock() - since) / (self.step - step) * (self.steps - self.step), 1)

    def _run(self) -> None:
        period = FIRST_PERIOD
        while not self._ended.wait(min(period, PERIOD)):
            self.renew()
            period = min(PERIOD, GROWTH * period)


def _other_machine(folder: Path) -> Heartbeat | None:
    """Return the heartbeat if it is fresh and of another machine."""
    beat = read_heartbeat(folder)
    return beat if beat is not None and not beat.is_here and beat.is_fresh else None


def _now() -> datetime:
    return datetime.now(UTC)


@cache
def _boot() -> str | None:
    """Return the kernel's boot id."""
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return None


def _exists(pid: int) -> bool:
    """Return whether this machine has a process with this id."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
