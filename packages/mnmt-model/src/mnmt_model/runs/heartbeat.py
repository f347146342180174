"""The heartbeat of a run: a file that its process renews, so that a dead run is told from a live one."""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from mnmt_data.store import is_locked, read_json, write_json
from mnmt_model.errors import RunError, SharedRunError
from mnmt_model.runs.run_record import LOCK, utc_now

HEARTBEAT = "heartbeat.json"
PERIOD = 10.0
"""Seconds from one heartbeat to the next."""
DEAD_AFTER = 60.0
"""Seconds without a heartbeat after which a run on another machine is taken for dead."""
FIRST_CHECK = 1.0
"""Seconds after which a process looks whether another has begun the same run at the same time."""
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, kw_only=True)
class Heartbeat:
    """The content of heartbeat.json: where a run's process is, and how far it has come."""

    host: str
    """Name of the machine."""
    pid: int
    """The process, on that machine."""
    boot: str | None = None
    """Number of the machine's start, which tells apart machines of one name; None where it has none."""
    time: str
    """When this was written, in UTC."""
    step: int
    """Steps that are done."""
    steps: int
    """Steps of the run."""
    loss: float | None = None
    """The newest training loss, nats per target token; None before the first."""
    seconds_left: float | None = None
    """Seconds until the last step, at the speed since its process began; None while unknown."""
    phase: str | None = None
    """What its process does before the first step, such as compiling; None once it trains."""

    @property
    def process(self) -> tuple[str, str | None, int]:
        """What no other process shares."""
        return self.host, self.boot, self.pid

    @property
    def is_here(self) -> bool:
        """Whether it was written on this machine, since its start."""
        return (self.host, self.boot) == (socket.gethostname(), _boot())

    @property
    def age(self) -> float:
        """Seconds since it was written."""
        return (datetime.now(UTC) - datetime.fromisoformat(self.time)).total_seconds()


def read_heartbeat(folder: Path) -> Heartbeat | None:
    """Return the newest heartbeat of the run in `folder`; None if it has none, as once it has ended."""
    try:
        return Heartbeat(**read_json(folder / HEARTBEAT, error=RunError))
    except (RunError, TypeError, OSError):
        return None


def is_alive(folder: Path) -> bool:
    """Return whether a process trains the run in `folder`, as far as can be told from here.

    A process of this machine is looked for; one of another machine is alive until it has been silent for
    `DEAD_AFTER` seconds.
    """
    beat = read_heartbeat(folder)
    if beat is None:
        return is_locked(folder / LOCK)  # It has just begun, and measures its matrix products.
    if not beat.is_here:
        return _silence(folder, beat) < DEAD_AFTER
    # A process that is stopped for a while is silent; one that was given an old number holds no lock.
    return _exists(beat.pid) and (beat.age < DEAD_AFTER or is_locked(folder / LOCK))


def trained_elsewhere(folder: Path) -> Heartbeat | None:
    """Return the heartbeat of another machine that is not old enough for its process to be taken for dead.

    Who holds the run's lock all the same knows that the process was killed a moment ago, or that locks do not
    hold between the machines.
    """
    beat = read_heartbeat(folder)
    if beat is None or beat.is_here or _silence(folder, beat) >= DEAD_AFTER:
        return None
    return beat


def _silence(folder: Path, beat: Heartbeat) -> float:
    """Return the seconds for which a process of another machine has not renewed its heartbeat.

    They are at least those for which this process has seen none: a clock that is ahead of this machine's
    writes times that are yet to come.
    """
    last, since = _watched.get(folder, (None, 0.0))
    if last != (beat.process, beat.time):
        since = time.monotonic()
        _watched[folder] = (beat.process, beat.time), since
    return max(beat.age, time.monotonic() - since)


_watched: dict[Path, tuple[tuple[object, str], float]] = {}
"""{folder of a run: (the heartbeat that this process has seen last, when it saw that first)}."""


def waiting_advice(beat: Heartbeat) -> str:
    """Return what to do where a process of another machine may have been killed a moment ago."""
    if beat.age < -PERIOD:
        return (
            f"is trained on {beat.host} (process {beat.pid}), whose clock is {-beat.age:.0f} s ahead of this "
            f"machine's; set the clocks, or remove {HEARTBEAT} if that was killed"
        )
    return (
        f"was trained on {beat.host} (process {beat.pid}) {beat.age:.0f} s ago; if that was killed, try "
        f"again in {DEAD_AFTER - beat.age:.0f} s; if not, locks do not hold between the machines"
    )


def sharing_advice(beat: Heartbeat) -> str:
    """Return what to do where another machine trains a run whose lock is free here."""
    return (
        f"is trained on {beat.host} (process {beat.pid}), though its lock is free here: locks do not hold "
        "between the machines; train on one, or mount the folder with locks"
    )


class HeartbeatWriter:
    """Renews the heartbeat of a run from a thread, until it is closed, which removes it.

    It looks whose heartbeat is there before it writes: two machines whose locks do not hold between them may
    begin a run at the same moment.

    Args:
        folder: The run's folder.
        step: Steps that are done.
        steps: Steps of the run.
        period: Seconds from one heartbeat to the next.
    """

    def __init__(self, folder: Path, *, step: int = 0, steps: int, period: float = PERIOD) -> None:
        self.folder, self.steps, self.period = folder, steps, period
        self.step = step
        self._process = socket.gethostname(), _boot(), os.getpid()
        self.loss: float | None = None
        self.phase: str | None = None
        self._lock = threading.Lock()
        self._first: tuple[int, float] | None = None
        self._other: Heartbeat | None = None
        self._ended = threading.Event()
        self._write()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._thread.start()

    def update(self, step: int) -> None:
        """Count `step` as done; the first one starts the clock, since it may compile.

        Raises:
            SharedRunError: If another process trains the run too.
        """
        if self._other is not None:
            raise SharedRunError(f"{self.folder}: {sharing_advice(self._other)}")
        self.step, self.phase = step, None
        if self._first is None:
            self._first = step, time.monotonic()

    def announce(self, phase: str) -> None:
        """Write at once what is done before the first step."""
        self.phase = phase
        if self._other is None:
            self._write()

    def close(self) -> None:
        """End the thread and remove this process's heartbeat, and parts of those of killed ones."""
        self._ended.set()
        self._thread.join()
        if self._other is None:
            for path in (self.folder / HEARTBEAT, *self.folder.glob(f".{HEARTBEAT}.*")):
                path.unlink(missing_ok=True)

    def seconds_left(self) -> float | None:
        """Return the seconds until the last step, at the speed since the first; None before two are done."""
        if self._first is None or self.step <= self._first[0]:
            return None
        step, since = self._first
        return round((time.monotonic() - since) / (self.step - step) * (self.steps - self.step), 1)

    def _run(self) -> None:
        pause = min(self.period, FIRST_CHECK)
        while not self._ended.wait(pause):
            beat = read_heartbeat(self.folder)
            if beat is not None and beat.process != self._process:
                self._other = beat
                return
            self._write()
            pause = self.period

    def _write(self) -> None:
        beat = Heartbeat(
            host=self._process[0],
            boot=self._process[1],
            pid=self._process[2],
            time=utc_now(),
            step=self.step,
            steps=self.steps,
            loss=self.loss,
            seconds_left=self.seconds_left(),
            phase=self.phase,
        )
        with self._lock, suppress(OSError):  # A full disk ends no run; its next checkpoint may find room.
            write_json(self.folder / HEARTBEAT, asdict(beat), end="")


@cache
def _boot() -> str | None:
    """Return the number of this machine's start."""
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return None


def _exists(pid: int) -> bool:
    """Return whether this machine has a process of this number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
