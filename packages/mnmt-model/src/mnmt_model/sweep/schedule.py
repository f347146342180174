"""Simulate the schedule of a study: runs start longest first, several at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import inf


@dataclass(frozen=True, kw_only=True)
class Job:
    """The training of one run."""

    name: str
    seconds: float
    after: str | None = None
    """The job whose run this one branches off."""
    share: float = 0.0
    """The share of that job's time after which this one can start."""


def wall_seconds(jobs: Sequence[Job], places: int) -> float:
    """Return the seconds until the last job ends, if a free place takes the longest job that can start."""
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
    """Return the time at which a job can start: infinity before the start of the job it branches off."""
    if job.after is None or job.after not in by_name:
        return 0.0
    return starts.get(job.after, inf) + job.share * by_name[job.after].seconds
