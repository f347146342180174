"""Training the runs of a study: workers are started as long as there is something for them to claim."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mnmt_data.jobs.workers import Crew, Workers
from mnmt_model.errors import Interrupted
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.runs.run_record import Status
from mnmt_model.sweep.next_run import (
    can_start,
    check_records,
    give_up_dead,
    has_ended,
    in_order,
    lost_trunk,
    read_if_begun,
)
from mnmt_model.sweep.workers import local_workers, modified
from mnmt_model.training.interruption import Interruption

SCAN_SHARE = 0.1
"""Share of the time that looking at a study's folder may take, which is slow on some shared disks."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run ended."""

    run: RunConfig
    status: Status
    error: str | None
    wall_seconds: float


class SweepWatcher:
    """Is called while a study is trained; a subclass overrides the events that it needs."""

    def end(self, outcome: Outcome) -> None:
        """Handle the end of a run."""

    def retry(self, run: RunConfig, error: str | None) -> None:
        """Handle the first failure of a run, which is tried once more."""

    def look(self, *, waiting: bool) -> None:
        """Handle a look at the study; `waiting`: all that is left is trained by others."""


def train_runs(
    runs: Sequence[RunConfig], folder: Path, *, jobs: int, watcher: SweepWatcher | None = None
) -> list[Outcome]:
    """Train runs on this machine, at most `jobs` at a time, the costliest first.

    Other sweeps may train runs of the same folder at the same time. Each run has a process of its own: one
    that fails, or is killed, takes none along. Finished runs are not trained again, interrupted ones go on
    from their newest checkpoint, and one that fails is tried once more.

    Args:
        runs: The runs.
        folder: Folder of all run records; each run has a folder of its name in it.
        jobs: Processes at a time; the machine's cores are shared among them.
        watcher: Is called as runs end.

    Returns:
        How each run ended, in the order of `runs`.

    Raises:
        RunError: If the study was changed since a run was trained.
        DataError: If workers end again and again, and train nothing.
        Interrupted: If SIGTERM, SIGINT or SIGUSR1 has come; what was training has checkpoints.
    """
    ordered = in_order(runs)
    check_records(ordered, folder)
    queue = RunQueue(ordered, folder, local_workers(ordered, folder, jobs=jobs), jobs=jobs, watcher=watcher)
    if signum := queue.train():
        raise Interrupted(signum)
    return queue.outcomes(runs)


class RunQueue:
    """The runs of a study that have not ended, and the workers that train them.

    What has been done is read from the folder alone, whoever did it. So any number of queues, on any number
    of machines, can work on one study.

    Args:
        runs: The runs, in the order in which they should be trained.
        folder: Folder of the runs' folders.
        workers: Train the runs.
        jobs: Workers at a time.
        watcher: Is called as runs end.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        runs: Sequence[RunConfig],
        folder: Path,
        workers: Workers,
        *,
        jobs: int,
        watcher: SweepWatcher | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.runs, self.folder, self.crew = runs, folder, Crew(workers, jobs)
        self.watcher = watcher or SweepWatcher()
        self.pause = workers.poll_seconds
        """Seconds until the next look."""
        self._clock = clock
        self._left = {run.name: run for run in runs if not self._has_ended(run)}
        self._failures: dict[str, int] = {}

    def train(self) -> int:
        """Keep workers at work until every run has ended, or a signal comes.

        Returns:
            The signal; 0 if none came.

        Raises:
            DataError: If workers end again and again, and train nothing.
        """
        with Interruption() as interruption:
            try:
                while self.look() and not interruption.signum:
                    time.sleep(self.pause)
                if interruption.signum:
                    self.crew.workers.stop(interruption.signum)
                    self._report()
            except BaseException:
                self.crew.workers.stop(signal.SIGKILL)
                raise
        return interruption.signum

    def look(self) -> bool:
        """Start workers for the runs that can start; return whether any run is left."""
        # Workers are counted first, so that the records that ended ones have written are seen below.
        began, alive = self._clock(), self.crew.alive()
        self._report()
        if not alive and not self._left:
            return False
        ready = any(can_start(run, self.folder) for run in self._left.values())
        self.watcher.look(waiting=not alive and not ready)
        self.pause = max(self.crew.workers.poll_seconds, (self._clock() - began) * (1 / SCAN_SHARE - 1))
        self.crew.tend(len(self._left) if ready else 0, modified(self._left.values(), self.folder))
        return True

    def outcomes(self, runs: Sequence[RunConfig]) -> list[Outcome]:
        """Return how runs ended."""
        return [self._outcome(run) for run in runs]

    def _report(self) -> None:
        """Tell the watcher of runs that have ended or failed since the last look."""
        for run in list(self._left.values()):
            give_up_dead(run, self.folder / run.name)
            record = read_if_begun(self.folder / run.name)
            if has_ended(record) or lost_trunk(run, self.folder):
                del self._left[run.name]
                self.watcher.end(self._outcome(run))
            elif record is not None and record.status == "failed":
                if self._failures.get(run.name) != record.attempts:
                    self.watcher.retry(run, record.error)
                self._failures[run.name] = record.attempts

    def _has_ended(self, run: RunConfig) -> bool:
        return has_ended(read_if_begun(self.folder / run.name))

    def _outcome(self, run: RunConfig) -> Outcome:
        record = read_if_begun(self.folder / run.name)
        lost = lost_trunk(run, self.folder)
        return Outcome(
            run=run,
            status="failed" if lost else record.status if record else "interrupted",
            error=lost or (record.error if record else None),
            wall_seconds=(record.wall_seconds if record else None) or 0.0,
        )
