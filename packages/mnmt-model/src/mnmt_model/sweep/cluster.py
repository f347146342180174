"""Workers as jobs of a cluster that Slurm schedules, submitted through submitit."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnmt_data.jobs.cluster import explain_sbatch
from mnmt_data.store import append_json_lines, read_json_lines
from mnmt_model.errors import RunError
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.sweep.cluster_config import ClusterConfig
from mnmt_model.sweep.run_queue import RunQueue
from mnmt_model.sweep.workers import NOTHING_LEFT, LocalWorkers, TrainRun, train_run
from mnmt_model.training.interruption import Interruption

if TYPE_CHECKING:
    from submitit.core.job_environment import JobEnvironment

SUBMISSIONS = "jobs.jsonl"
"""File of the jobs' folder with a line a submission."""
MAX_REQUEUES = 1000
"""How often a job may be queued again after its time was up."""
FIRST_PORT = 20_000
PORTS = 10_000
ROUNDS = 64
MAX_FAILURES = 3
"""Runs that may fail one after the other before a job of several processes gives up."""


class SlurmWorkers:
    """The workers of a sweep as Slurm's jobs, which outlive the command that submits them.

    Args:
        runs: The runs, in the order in which they should be trained.
        folder: Folder of the runs' folders.
        jobs_folder: For the jobs' logs; all machines must see both folders.
        name: Name of the jobs.
        config: What a job asks of the cluster.
        train: Trains a run.

    Raises:
        RunError: If submitit is not installed, or this machine has no Slurm.
    """

    poll_seconds = 10.0
    skipped: Set[str] = frozenset()
    """Each job leaves runs to other machines by itself."""

    def __init__(
        self,
        runs: Sequence[RunConfig],
        folder: Path,
        *,
        jobs_folder: Path,
        name: str,
        config: ClusterConfig,
        train: TrainRun = train_run,
    ) -> None:
        self.job = ClusterJob(runs=tuple(runs), folder=folder.resolve(), train=train)
        self.jobs_folder, self.name, self.config = jobs_folder.resolve(), name, config
        self.jobs_folder.mkdir(parents=True, exist_ok=True)
        self.executor = _executor(self.jobs_folder)
        self.executor.update_parameters(job_name=name, **config.parameters())
        self._alive = 0

    def alive(self) -> int:
        """Return how many jobs wait or run; as many as before where Slurm does not answer."""
        ids = {line["job"] for line in read_json_lines(self.jobs_folder / SUBMISSIONS, error=RunError)}
        if ids and (listed := _squeue()) is not None:
            self._alive = sum(job.partition("_")[0] in ids for job in listed)
        return self._alive

    def start(self, number: int) -> None:
        """Submit jobs, as an array if they are several.

        Raises:
            DataError: If sbatch fails.
        """
        with explain_sbatch(), self.executor.batch():
            jobs = [self.executor.submit(self.job) for _ in range(number)]
        job = jobs[0].job_id.partition("_")[0]
        append_json_lines(self.jobs_folder / SUBMISSIONS, [{"job": job, "tasks": number}])
        self._alive += number

    def stop(self, signum: int) -> None:
        """Leave the jobs alone."""

    def kill(self) -> None:
        """Leave the jobs alone."""

    def describe(self) -> str:
        """Return where their logs are."""
        return f"see the newest log in {self.jobs_folder}"

    def farewell(self) -> str:
        """Return what to know about the jobs once the sweep has stopped before its end."""
        return (
            f"the jobs go on, with logs in {self.jobs_folder}; the same command watches them, "
            f"`scancel --me --name={self.name}` ends them"
        )


@dataclass(frozen=True)
class ClusterJob:
    """What a job does: it claims run after run, and trains them, until none is left to claim.

    submitit calls it, in every process of the job, and queues it again when its time is up.
    """

    runs: tuple[RunConfig, ...]
    folder: Path
    train: TrainRun

    def __call__(self) -> None:
        """Train runs until none is left to claim."""
        import submitit

        job = submitit.JobEnvironment()
        signum = self._train_together(job) if job.num_tasks > 1 else self._train_alone()
        if signum == signal.SIGUSR1:
            signal.raise_signal(signal.SIGUSR1)  # submitit queues the job again.
        sys.exit(128 + signum if signum else 0)

    def checkpoint(self) -> Any:
        """Return what is to be done when the job runs again: the same."""
        import submitit

        return submitit.helpers.DelayedSubmission(self)

    def _train_alone(self) -> int:
        """Train as the only process of a job; return the signal that ended it, or 0."""
        workers = LocalWorkers(self.runs, self.folder, jobs=1, train=self.train)
        return RunQueue(self.runs, self.folder, workers, jobs=1).train(wait=False)

    def _train_together(self, job: JobEnvironment) -> int:
        """Train as one of several processes; return the signal that ended it, or 0.

        Each round is a worker in every process, and these train one run together.
        """
        failures = 0
        with Interruption() as interruption:
            for attempt in count():
                status = self._train_round(job, attempt, interruption)
                failures = failures + 1 if status else 0
                if interruption.signum or status == NOTHING_LEFT:
                    return interruption.signum
                if failures > MAX_FAILURES:
                    sys.exit(1)
        raise AssertionError("unreachable")

    def _train_round(self, job: JobEnvironment, attempt: int, interruption: Interruption) -> int:
        port = FIRST_PORT + (int(job.raw_job_id) * ROUNDS + attempt % ROUNDS) % PORTS
        environ = {
            "RANK": str(job.global_rank),
            "WORLD_SIZE": str(job.num_tasks),
            "LOCAL_RANK": str(job.local_rank),
            "MASTER_ADDR": job.hostnames[0],
            "MASTER_PORT": str(port),
        }
        workers = LocalWorkers(self.runs, self.folder, jobs=1, environ=environ, train=self.train)
        workers.start(1)
        while workers.alive():
            time.sleep(workers.poll_seconds)
            if interruption.signum:
                workers.stop(interruption.signum)
        return workers.exit_statuses[0]


def _executor(folder: Path) -> Any:
    try:
        import submitit
    except ImportError:
        raise RunError("--cluster slurm needs `pip install './packages/mnmt-model[cluster]'`") from None
    try:
        return submitit.SlurmExecutor(folder, max_num_timeout=MAX_REQUEUES)
    except RuntimeError:
        raise RunError("--cluster slurm needs Slurm, but this machine has no `srun`") from None


def _squeue() -> list[str] | None:
    """Return the ids of the user's jobs that wait or run; None if Slurm does not answer."""
    command = ["squeue", "--me", "--array", "--noheader", "--format=%i"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split()
    except (subprocess.SubprocessError, OSError):
        return None
