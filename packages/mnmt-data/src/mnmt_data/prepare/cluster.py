"""Worker processes that submitit starts: on this machine, or as jobs of a cluster that Slurm schedules."""

from __future__ import annotations

import io
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any, Literal

from mnmt_data.errors import DataError, missing_extra
from mnmt_data.prepare.cluster_config import ClusterConfig
from mnmt_data.prepare.job_queue import serve

ClusterKind = Literal["local", "slurm"]

_WEEK_MINUTES = 7 * 24 * 60
_STOP_SECONDS = 10.0


class Cluster:
    """Starts workers of a queue.

    Args:
        kind: `local` for processes of this machine, `slurm` for jobs that Slurm schedules.
        jobs: How many to start at first.
        logs: Folder of their logs, which all machines see.
        name: Name of the jobs.
        config: What a job asks of Slurm.

    Raises:
        DataError: If submitit is not installed, or this machine has no Slurm.
    """

    def __init__(
        self,
        kind: ClusterKind,
        *,
        jobs: int,
        logs: Path,
        name: str,
        config: ClusterConfig = ClusterConfig(),  # noqa: B008 - it is frozen
    ) -> None:
        self.jobs, self.logs = jobs, logs.resolve()
        self._is_slurm = kind == "slurm"
        self.processes = config.processes if self._is_slurm else 1
        """Worker processes of a job."""
        self.workers = jobs * self.processes
        """Worker processes of all jobs."""
        self._executor = _executor(kind, self.logs)
        if self._is_slurm:
            self._executor.update_parameters(job_name=name, **config.parameters())
        else:
            self._executor.update_parameters(timeout_min=_WEEK_MINUTES, stderr_to_stdout=True)
        self._started: list[Any] = []

    def start(self, queue: Path, number: int) -> None:
        """Start jobs that work for a queue, as an array if they are several.

        Raises:
            DataError: If sbatch fails.
        """
        with _ctrl_c_ignored(), explain_sbatch(), self._executor.batch():
            jobs = [self._executor.submit(serve, queue) for _ in range(number)]
        self._started += jobs

    def stop(self) -> None:
        """Cancel the jobs, which end by themselves where they have begun."""
        if self._is_slurm:
            for job in self._started:
                job.cancel(check=False)
        deadline = time.monotonic() + _STOP_SECONDS
        while not self._is_slurm and time.monotonic() < deadline:
            if all(job.done() for job in self._started):
                return
            time.sleep(0.05)


@contextmanager
def explain_sbatch(error: type[Exception] = DataError) -> Iterator[None]:
    """Turn the lines of an sbatch that fails, which submitit prints as well, into a message of one line.

    Args:
        error: The exception to raise.

    Raises:
        DataError: If sbatch fails: it refuses a job, or cannot reach Slurm.
    """
    from submitit.core.utils import FailedJobError

    try:
        with redirect_stderr(io.StringIO()):
            yield
    except FailedJobError as failure:
        lines = re.sub(r"^sbatch: (error|fatal): ", "", str(failure).strip(), flags=re.MULTILINE)
        raise error(f"sbatch failed: {'; '.join(lines.splitlines())}") from None


@contextmanager
def _ctrl_c_ignored() -> Iterator[None]:
    """Let processes that are started meanwhile leave Ctrl-C to this one, with which they end."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Only that thread may.
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _executor(kind: ClusterKind, logs: Path) -> Any:
    try:
        import submitit
    except ImportError:
        raise DataError(f"--cluster {missing_extra('cluster')}.") from None
    try:
        return submitit.SlurmExecutor(logs) if kind == "slurm" else submitit.LocalExecutor(logs)
    except RuntimeError:
        raise DataError("--cluster slurm needs Slurm, but this machine has no `srun`") from None
