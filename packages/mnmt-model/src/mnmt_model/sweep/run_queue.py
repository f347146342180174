"""Train the runs of a study: start workers while there are runs for them to claim."""

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
"""Largest share of time for reading a study's folder, which is slow on some shared disks."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of a run."""

    run: RunConfig
    status: Status
    error: str | None
    wall_seconds: float


class SweepWatcher:
    """Handles events while a study is trained; a subclass overrides those that it needs."""

    def end(self, outcome: Outcome) -> None:
        """Handle the end of a run."""

    def retry(self, run: RunConfig, error: str | None) -> None:
        """Handle the first failure of a run, before its second attempt."""

    def warn(self, line: str) -> None:
        """Handle a line that a worker writes to stderr."""

    def look(self, *, waiting: bool) -> None:
        """Handle a check of the study; `waiting` if other sweeps train all remaining runs."""


def train_runs(
    runs: Sequence[RunConfig], folder: Path, *, jobs: int, watcher: SweepWatcher | None = None
) -> list[Outcome]:
    """Train runs on this machine, at most `jobs` at a time, the costliest first.

    Other sweeps may train runs of the same folder at the same time. Each run has a separate process, whose
    failure does not affect the others. Finished runs are not trained again, interrupted ones continue from
    their newest checkpoint, and a failed one is tried once more.

    Args:
        runs: The runs.
        folder: Folder of all run records; each run has a folder of its name in it.
        jobs: Processes at a time; the machine's cores are shared among them.
        watcher: Called when runs end.

    Returns:
        The outcome of each run, in the order of `runs`.

    Raises:
        RunError: If the study was changed since a run was trained.
        DataError: If workers repeatedly end without training.
        Interrupted: After SIGTERM, SIGINT or SIGUSR1; interrupted runs have checkpoints.
    """
    ordered = in_order(runs)
    check_records(ordered, folder)
    workers = local_workers(ordered, folder, jobs=jobs, on_line=watcher.warn if watcher else None)
    queue = RunQueue(ordered, folder, workers, jobs=jobs, watcher=watcher)
    if signum := queue.train():
        raise Interrupted(signum)
    return queue.outcomes(runs)


class RunQueue:
    """The remaining runs of a study, and the workers that train them.

    The state of runs is read only from the folder. So any number of queues, on any number of machines, can
    work on one study.

    Args:
        runs: The runs, in the order of training.
        folder: Folder of the runs' folders.
        workers: Train the runs.
        jobs: Workers at a time.
        watcher: Called when runs end.
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
        """Seconds until the next check."""
        self._clock = clock
        self._left = {run.name: run for run in runs if not self._has_ended(run)}
        self._failures: dict[str, int] = {}

    def train(self) -> int:
        """Keep workers running until every run has ended, or a signal arrives.

        Returns:
            The signal, or 0.

        Raises:
            DataError: If workers repeatedly end without training.
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
        """Start workers for runs that can start; return whether runs or workers are left."""
        # Count workers first, so that the records of ended workers are read below.
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
        """Return the outcomes of runs."""
        return [self._outcome(run) for run in runs]

    def _report(self) -> None:
        """Call the watcher for runs that have ended or failed since the last check."""
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
