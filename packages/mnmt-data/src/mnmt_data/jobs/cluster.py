"""Workers as Slurm jobs, submitted through submitit."""

from __future__ import annotations

import io
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from mnmt_data.errors import DataError, missing_extra
from mnmt_data.jobs.workers import Work
from mnmt_data.store.json_lines import append_json_lines, read_json_lines
from mnmt_data.study import Ranges, check_ranges

SUBMISSIONS = "jobs.jsonl"
"""File in the jobs' folder with a line per submission."""
MAX_REQUEUES = 1000
"""How often a job may be queued again after its time limit."""
SIGNAL_SECONDS = 120
"""Seconds before the time limit at which a job gets the signal to save its work (up to 60 s earlier)."""
SETUP = "export SUBMITIT_PREEMPT_SIGNAL=USR1"


@dataclass(frozen=True, kw_only=True)
class ClusterConfig:
    """Resources of a Slurm job."""

    RANGES: ClassVar[Ranges] = {
        "[1, 10000]": ("nodes", "processes", "cpus_per_task"),
        "[0, 10000]": ("gpus_per_node",),
        "[1, 1e6]": ("minutes",),
    }

    nodes: int = 1
    """Number of machines per job."""
    processes: int | None = None
    """Processes per machine, by default one per GPU, or one; in a sweep they train one run together."""
    gpus_per_node: int | None = None
    """GPUs per machine."""
    cpus_per_task: int | None = None
    """Cores per process."""
    minutes: int = 60
    """Time limit of a job; after it, another job continues the work."""
    slurm: dict[str, str] | None = None  # a Mapping has no `--slurm.NAME` on the command line
    """Other options of sbatch, such as `--slurm.partition gpu` or `--slurm.mem 64G`."""

    def __post_init__(self) -> None:
        check_ranges(self)

    @property
    def tasks_per_node(self) -> int:
        """Processes per machine."""
        return self.processes or self.gpus_per_node or 1

    @property
    def num_tasks(self) -> int:
        """Processes per job."""
        return self.nodes * self.tasks_per_node

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of submitit's executor."""
        cpus = [] if self.cpus_per_task is None else [f"--cpus-per-task={self.cpus_per_task}"]
        parameters = {
            "nodes": self.nodes,
            "ntasks_per_node": self.tasks_per_node,
            "gpus_per_node": self.gpus_per_node,
            "cpus_per_task": self.cpus_per_task,
            "time": self.minutes,
            "setup": [SETUP],
            "srun_args": ["--kill-on-bad-exit=1", *cpus],
            "stderr_to_stdout": True,
            "additional_parameters": {
                "requeue": True,
                "signal": f"USR1@{SIGNAL_SECONDS}",
                **(self.slurm or {}),
            },
        }
        return {key: value for key, value in parameters.items() if value is not None}


class SlurmWorkers:
    """Slurm jobs as workers; after the time limit, the next job continues the work.

    Args:
        work: The work of each process of a job.
        folder: Folder for the jobs' logs, on a disk that all machines share.
        name: Name of the jobs.
        config: Resources of a job.
        detached: Whether jobs continue after the process that submits them has ended.

    Raises:
        DataError: If submitit is not installed, or this machine has no Slurm.
    """

    poll_seconds = 10.0

    def __init__(
        self, work: Work, *, folder: Path, name: str, config: ClusterConfig, detached: bool = False
    ) -> None:
        self.job, self.folder, self.name, self.detached = ClusterJob(work), folder.resolve(), name, detached
        self.folder.mkdir(parents=True, exist_ok=True)
        self._executor = _executor(self.folder)
        self._executor.update_parameters(job_name=name, **config.parameters())
        self._started: list[str] = []
        self._alive = 0

    def alive(self) -> int:
        """Return the number of pending and running jobs; the last known number if Slurm does not answer."""
        ids = {line["job"] for line in read_json_lines(self.folder / SUBMISSIONS)}
        if ids and (listed := _squeue()) is not None:
            self._alive = sum(job.partition("_")[0] in ids for job in listed)
        return self._alive

    def start(self, count: int) -> None:
        """Submit jobs, as an array if `count` is above 1.

        Raises:
            DataError: If sbatch fails.
        """
        with _explain_sbatch(), self._executor.batch():
            jobs = [self._executor.submit(self.job) for _ in range(count)]
        job = jobs[0].job_id.partition("_")[0]
        append_json_lines(self.folder / SUBMISSIONS, [{"job": job, "tasks": count}])
        self._started.append(job)
        self._alive += count

    def stop(self, signum: int) -> None:
        """Cancel the jobs, unless they are detached."""
        if self._started and not self.detached:
            subprocess.run(["scancel", *self._started], check=False, capture_output=True)

    def describe(self) -> str:
        """Return a hint at the logs."""
        return f"see the newest log in {self.folder}"


@dataclass(frozen=True)
class ClusterJob:
    """The callable that submitit runs in each process of a job, and again in the next job after the limit."""

    work: Work

    def __call__(self) -> None:
        """Do the work; submitit queues the job again if SIGUSR1 ended the work."""
        handler = signal.getsignal(signal.SIGUSR1)
        status = self.work()
        if status == 128 + signal.SIGUSR1:
            signal.signal(signal.SIGUSR1, handler)
            signal.raise_signal(signal.SIGUSR1)
        sys.exit(status)

    def checkpoint(self) -> Any:
        """Return the work of the next job, which is the same."""
        import submitit

        return submitit.helpers.DelayedSubmission(self)


@contextmanager
def _explain_sbatch() -> Iterator[None]:
    """Turn the output of a failed sbatch, which submitit also prints, into a message of one line.

    Raises:
        DataError: If sbatch rejects a job or cannot reach Slurm.
    """
    from submitit.core.utils import FailedJobError

    try:
        with redirect_stderr(io.StringIO()):
            yield
    except FailedJobError as failure:
        lines = re.sub(r"^sbatch: (error|fatal): ", "", str(failure).strip(), flags=re.MULTILINE)
        raise DataError(f"sbatch failed: {'; '.join(lines.splitlines())}") from None


def _executor(folder: Path) -> Any:
    try:
        import submitit
    except ImportError:
        raise DataError(f"--cluster slurm {missing_extra('cluster')}.") from None
    try:
        return submitit.SlurmExecutor(folder, max_num_timeout=MAX_REQUEUES)
    except RuntimeError:
        raise DataError("--cluster slurm needs Slurm, but this machine has no `srun`") from None


def _squeue() -> list[str] | None:
    """Return the ids of the user's pending and running jobs, or None if Slurm does not answer."""
    command = ["squeue", "--me", "--array", "--noheader", "--format=%i"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split()
    except (subprocess.SubprocessError, OSError):
        return None
