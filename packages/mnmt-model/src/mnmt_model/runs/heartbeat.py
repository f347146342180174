"""The heartbeat of a run: a file that its process renews, so that a dead run is told from a live one."""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from mnmt_data.store import is_locked, read_json, write_json
from mnmt_model.errors import RunError
from mnmt_model.runs.run_record import LOCK, utc_now

HEARTBEAT = "heartbeat.json"
PERIOD = 10.0
"""Seconds from one heartbeat to the next."""
DEAD_AFTER = 60.0
"""Seconds without a heartbeat after which a run on another machine is taken for dead."""


@dataclass(frozen=True, kw_only=True)
class Heartbeat:
    """The content of heartbeat.json: where a run's process is, and how far it has come."""

    host: str
    """Name of the machine."""
    pid: int
    """The process, on that machine."""
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

    @property
    def age(self) -> float:
        """Seconds since it was written."""
        return (datetime.now(UTC) - datetime.fromisoformat(self.time)).total_seconds()


def read_heartbeat(folder: Path) -> Heartbeat | None:
    """Return the newest heartbeat of the run in `folder`; None if it has none, as once it has ended."""
    try:
        return Heartbeat(**read_json(folder / HEARTBEAT, error=RunError))
    except (RunError, TypeError):
        return None


def is_alive(folder: Path) -> bool:
    """Return whether a process trains the run in `folder`, as far as can be told from here.

    A process of this machine is looked for; one of another machine is alive until it has been silent for
    `DEAD_AFTER` seconds.
    """
    beat = read_heartbeat(folder)
    if beat is None:
        return False
    if beat.host != socket.gethostname():
        return beat.age < DEAD_AFTER
    # A process that is stopped for a while is silent; one that was given an old number holds no lock.
    return _exists(beat.pid) and (beat.age < DEAD_AFTER or is_locked(folder / LOCK))


class HeartbeatWriter:
    """Renews the heartbeat of a run from a thread, until it is closed, which removes it.

    Args:
        folder: The run's folder.
        step: Steps that are done.
        steps: Steps of the run.
        period: Seconds from one heartbeat to the next.
    """

    def __init__(self, folder: Path, *, step: int = 0, steps: int, period: float = PERIOD) -> None:
        self.folder, self.steps, self.period = folder, steps, period
        self.step = step
        self.loss: float | None = None
        self._first: tuple[int, float] | None = None
        self._ended = threading.Event()
        self._write()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._thread.start()

    def update(self, step: int) -> None:
        """Count `step` as done; the first one starts the clock, since it may compile."""
        self.step = step
        if self._first is None:
            self._first = step, time.monotonic()

    def close(self) -> None:
        """End the thread and remove the heartbeat."""
        self._ended.set()
        self._thread.join()
        (self.folder / HEARTBEAT).unlink(missing_ok=True)

    def seconds_left(self) -> float | None:
        """Return the seconds until the last step, at the speed since the first; None before two are done."""
        if self._first is None or self.step <= self._first[0]:
            return None
        step, since = self._first
        return round((time.monotonic() - since) / (self.step - step) * (self.steps - self.step), 1)

    def _run(self) -> None:
        while not self._ended.wait(self.period):
            self._write()

    def _write(self) -> None:
        beat = Heartbeat(
            host=socket.gethostname(),
            pid=os.getpid(),
            time=utc_now(),
            step=self.step,
            steps=self.steps,
            loss=self.loss,
            seconds_left=self.seconds_left(),
        )
        with suppress(OSError):  # A full disk ends no run; its next checkpoint may find room.
            write_json(self.folder / HEARTBEAT, asdict(beat), end="")


def _exists(pid: int) -> bool:
    """Return whether this machine has a process of this number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
