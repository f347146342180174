"""Training the runs of a study: workers are started as long as there is something for them to claim."""

from __future__ import annotations

import signal
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mnmt_model.errors import Interrupted, RunError, SharedRunError
from mnmt_model.runs.heartbeat import Heartbeat
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.runs.run_record import RUN, Status
from mnmt_model.sweep.claims import (
    check_locks,
    check_records,
    give_up_dead,
    has_ended,
    in_order,
    lost_trunk,
    read_if_begun,
    unlocked,
)
from mnmt_model.sweep.workers import LocalWorkers
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


class Workers(Protocol):
    """Processes or jobs that claim runs and train them."""

    poll_seconds: float
    """Seconds between two looks at them."""

    @property
    def skipped(self) -> Collection[str]:
        """Return the names of runs that this machine cannot continue, which are left to others."""

    def alive(self) -> int:
        """Return how many there are, those included that wait for a machine."""

    def start(self, count: int) -> None:
        """Start `count` of them."""

    def stop(self, signum: int) -> None:
        """Handle the signal that ends the sweep."""

    def kill(self) -> None:
        """Handle an error that ends the sweep."""

    def describe(self) -> str:
        """Return where their errors are to be read."""

    def farewell(self) -> str:
        """Return what to know about them once the sweep has stopped before its end."""


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
        RunError: If the study was changed since a run was trained, or workers end again and again.
        Interrupted: If SIGTERM, SIGINT or SIGUSR1 has come; what was training has checkpoints.
    """
    ordered = in_order(runs)
    check_records(ordered, folder)
    queue = RunQueue(ordered, folder, LocalWorkers(ordered, folder, jobs=jobs), jobs=jobs, watcher=watcher)
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
    """

    def __init__(
        self,
        runs: Sequence[RunConfig],
        folder: Path,
        workers: Workers,
        *,
        jobs: int,
        watcher: SweepWatcher | None = None,
    ) -> None:
        self.runs, self.folder, self.workers, self.jobs = runs, folder, workers, jobs
        self.watcher = watcher or SweepWatcher()
        self._left = {run.name: run for run in runs if not self._has_ended(run)}
        self._failures: dict[str, int] = {}
        self._beats: dict[str, Heartbeat] = {}
        self._useless = self._alive = 0
        self._times: list[int] = []
        self._pause = workers.poll_seconds

    def train(self, *, wait: bool = True) -> int:
        """Keep workers at work until every run has ended, or a signal comes.

        Runs that this machine cannot continue are left to others, and not waited for.

        Args:
            wait: Whether to wait for runs that others train, and take over those of them that die; without it
                the end is when nothing is left to claim.

        Returns:
            The signal; 0 if none came.

        Raises:
            RunError: If workers end again and again, and train nothing.
            SharedRunError: If another machine trains a run whose lock is free here.
        """
        with Interruption() as interruption:
            try:
                while self._keep_at_work(wait) and not interruption.signum:
                    time.sleep(self._pause)
                if interruption.signum:
                    self.workers.stop(interruption.signum)
                    self._report()
            except SharedRunError:
                self.workers.stop(signal.SIGTERM)
                raise
            except BaseException:
                self.workers.kill()
                raise
        return interruption.signum

    def _keep_at_work(self, wait: bool) -> bool:
        """Start workers for what is left; return whether to look again later."""
        alive, before = self.workers.alive(), time.monotonic()
        self._leave(self.workers.skipped)
        free = list(unlocked(self.runs, self.folder)) if self._left else []
        ready = [run for run, beat in free if beat is None]
        self._beats = check_locks(free, self._beats)
        self._report()
        if not alive and not (self._left and (wait or free)):
            return False
        self._check_use(alive)
        if ready and (count := min(self.jobs, len(self._left)) - alive) > 0:
            # Starting workers may take long, and is no look at the folder.
            before += self._start(count)
            self._alive = alive + count
        self.watcher.look(waiting=not alive and not ready)
        self._pause = max(self.workers.poll_seconds, (time.monotonic() - before) * (1 / SCAN_SHARE - 1))
        return True

    def _start(self, count: int) -> float:
        """Start workers; return the seconds that it took."""
        before = time.monotonic()
        self.workers.start(count)
        return time.monotonic() - before

    def _leave(self, skipped: Collection[str]) -> None:
        """Leave runs, and the branches of these, to other machines."""
        if skipped:
            others = [run for run in self.runs if run.branch is None or run.branch.run not in skipped]
            self.runs = [run for run in others if run.name not in skipped]
            names = {run.name for run in self.runs}
            self._left = {name: run for name, run in self._left.items() if name in names}

    def submit(self) -> None:
        """Start workers for what can be claimed now, and leave them alone."""
        self._keep_at_work(wait=False)

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

    def _check_use(self, alive: int) -> None:
        """Count workers that ended, whereas nothing has been trained in the meantime."""
        times = [_modified(self.folder / name / RUN) for name in self._left]
        self._useless = self._useless + max(0, self._alive - alive) if times == self._times else 0
        self._times, self._alive = times, alive
        if self._useless > self.jobs + 2:
            raise RunError(f"{self._useless} workers have ended without training; {self.workers.describe()}")

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


def _modified(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
