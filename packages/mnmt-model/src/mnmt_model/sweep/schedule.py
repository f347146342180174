"""How long a study takes on some machines: its runs, the longest first, on places that train at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import inf

from mnmt_model.errors import RunError


@dataclass(frozen=True, kw_only=True)
class Machines:
    """The machines that a study is trained on."""

    jobs: int | None = None
    """Runs to train at a time; by default as many as the machines have devices for."""
    nodes: int = 1
    """Number of machines."""
    devices_per_node: int | None = None
    """Devices of a machine: GPUs, or cores if it has none; by default those of this one."""

    def check(self) -> None:
        """Check the numbers.

        Raises:
            RunError: If one is below 1.
        """
        for name, number in vars(self).items():
            if number is not None and number < 1:
                raise RunError(f"`{name}` must be at least 1, but is {number}.")

    def places(self, devices: int, *, local_devices: int) -> int:
        """Return how many runs train at a time.

        A run that fits into a machine is not divided among two.

        Args:
            devices: Devices that train one run together.
            local_devices: Devices of this machine.

        Raises:
            RunError: If the machines have fewer devices than a run takes.
        """
        if self.jobs is not None:
            return self.jobs
        per_node = self.devices_per_node or (
            max(local_devices, devices) if self.nodes == 1 else local_devices
        )
        places = self.nodes * (per_node // devices) or self.nodes * per_node // devices
        if not places:
            total = self.nodes * per_node
            raise RunError(f"`devices` must be at most the {total} of all nodes, but is {devices}.")
        return places


@dataclass(frozen=True, kw_only=True)
class Job:
    """The training of one run."""

    name: str
    seconds: float
    after: str | None = None
    """The job that this one branches from."""
    share: float = 0.0
    """The share of that job's time after which this one can start."""


def wall_seconds(jobs: Sequence[Job], places: int) -> float:
    """Return the seconds until the last job ends, where a free place takes the longest that can start."""
    waiting = sorted(jobs, key=lambda job: job.seconds, reverse=True)
    by_name = {job.name: job for job in jobs}
    starts: dict[str, float] = {}
    free, last = [0.0] * places, 0.0
    heapify(free)
    while waiting:
        now = heappop(free)
        ready = [_ready(job, by_name, starts) for job in waiting]
        number = next((number for number, time in enumerate(ready) if time <= now), None)
        if number is None:
            heappush(free, min(ready))
            continue
        job = waiting.pop(number)
        starts[job.name] = now
        last = max(last, now + job.seconds)
        heappush(free, now + job.seconds)
    return last


def _ready(job: Job, by_name: Mapping[str, Job], starts: Mapping[str, float]) -> float:
    """Return the time at which a job can start: infinity while that which it branches from has not."""
    if job.after is None or job.after not in by_name:
        return 0.0
    return starts.get(job.after, inf) + job.share * by_name[job.after].seconds
