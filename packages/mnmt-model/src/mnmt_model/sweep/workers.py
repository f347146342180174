"""The work of a sweep's workers: claim runs and train them, on this machine or in jobs of a cluster."""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from mnmt_data.errors import UserError
from mnmt_data.jobs.workers import MAX_USELESS, LocalWorkers, num_cores
from mnmt_model.errors import RunError, RunInUseError, one_line
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.runs.run_record import RUN
from mnmt_model.sweep.next_run import next_run
from mnmt_model.training.interruption import Interruption

if TYPE_CHECKING:
    from submitit.core.job_environment import JobEnvironment

PRELOADED = ("mnmt_model.training.run", "torch._dynamo", "torch.distributed.fsdp", "pandas")
"""Modules to load before forking workers; the first steps would import the last three, slowly."""
NOTHING_LEFT = 3
"""Exit status of a worker that found no run to claim."""
FIRST_PORT = 20_000
PORTS = 10_000
ROUNDS = 64

TrainRun = Callable[[RunConfig, Path], None]
"""Trains a run to its end; the second argument is the folder of the runs' folders."""


def train_run(run: RunConfig, folder: Path) -> None:
    """Train a run in its folder in `folder`; see `mnmt_model.train`."""
    from mnmt_model.training.run import train

    train(run, folder / run.name)


@dataclass(frozen=True)
class RunWork:
    """The work of one process: claim a run, and train it to its end.

    Args:
        runs: The runs, in the order of training.
        folder: Folder of the runs' folders.
        train: Trains a run.
        threads: Threads of the process.
        environ: Additional environment variables of the process.
    """

    runs: tuple[RunConfig, ...]
    folder: Path
    train: TrainRun = train_run
    threads: int = 1
    environ: Mapping[str, str] | None = None

    def __call__(self) -> int:
        """Train a run, and return the exit status of the process."""
        import torch

        os.environ.update(self.environ or {})
        torch.set_num_threads(self.threads)
        place = int(os.environ.get("LOCAL_RANK", "0"))
        os.environ["LOCAL_RANK"] = str(place % max(1, torch.cuda.device_count()))
        try:
            return 0 if train_next(self.runs, self.folder, self.train) else NOTHING_LEFT
        except (UserError, OSError) as error:
            _complain(one_line(error))
        except KeyboardInterrupt as interruption:
            return int(getattr(interruption, "exit_status", 130))
        except Exception:
            _complain(traceback.format_exc())
        return 1


def train_next(runs: Sequence[RunConfig], folder: Path, train: TrainRun) -> bool:
    """Claim the next run and train it; return False if there is none.

    The processes of one job (see `World`) train the same run.

    Args:
        runs: The runs, in the order of training.
        folder: Folder of the runs' folders.
        train: Trains a run.
    """
    from mnmt_model.distributed.world import join_world, on_first_rank

    with join_world():
        while (run := on_first_rank(lambda: next_run(runs, folder))) is not None:
            try:
                train(run, folder)
                return True
            except RunInUseError:
                continue  # claimed by another sweep
            except RunError as error:
                raise RunError(failure_line(run, one_line(error))) from None
    return False


def failure_line(run: RunConfig, error: str) -> str:
    """Return an error with the name of its run."""
    return error if run.name in error else f"{run.name}: {error}"


def local_workers(
    runs: Sequence[RunConfig],
    folder: Path,
    *,
    jobs: int,
    train: TrainRun = train_run,
    on_line: Callable[[str], object] | None = None,
) -> LocalWorkers:
    """Return workers on this machine, which share its cores; each trains one run.

    Args:
        runs: The runs, in the order of training.
        folder: Folder of the runs' folders.
        jobs: Workers at a time.
        train: Trains a run.
        on_line: Called with each line that a worker writes to stderr.
    """
    work = RunWork(tuple(runs), folder, train, max(1, num_cores() // jobs))
    return LocalWorkers(work, count=jobs, preload=PRELOADED, on_line=on_line)


@dataclass(frozen=True)
class ClusterWork:
    """The work of each process of a cluster's job: train run after run, until there is no run to claim.

    Each round starts a worker in every process of the job; these workers train one run together.

    Args:
        runs: The runs, in the order of training.
        folder: Folder of the runs' folders.
        train: Trains a run.
    """

    runs: tuple[RunConfig, ...]
    folder: Path
    train: TrainRun = train_run

    def __call__(self) -> int:
        """Train runs, and return the exit status of the process."""
        import submitit

        job = submitit.JobEnvironment()
        useless, progress = 0, modified(self.runs, self.folder)
        with Interruption() as interruption:
            for number in count():
                status = self._train_round(job, number, interruption)
                if interruption.signum or status == NOTHING_LEFT:
                    break
                before, progress = progress, modified(self.runs, self.folder)
                useless = useless + 1 if status and progress == before else 0
                if useless > MAX_USELESS:
                    return status
        return 128 + interruption.signum if interruption.signum else 0

    def _train_round(self, job: JobEnvironment, number: int, interruption: Interruption) -> int:
        """Start a worker, and wait for its end; return its exit status."""
        environ = {} if job.num_tasks == 1 else _world_of(job, number)
        work = RunWork(self.runs, self.folder, self.train, num_cores(), environ)
        workers = LocalWorkers(work, count=1, preload=PRELOADED)
        workers.start(1)
        while workers.alive():
            time.sleep(workers.poll_seconds)
            if interruption.signum:
                workers.stop(interruption.signum)
        return workers.exit_statuses[0]


def modified(runs: Iterable[RunConfig], folder: Path) -> list[int]:
    """Return the time of the last change of each run's record, to detect progress."""
    paths = [folder / run.name / RUN for run in runs]
    return [path.stat().st_mtime_ns if path.is_file() else 0 for path in paths]


def default_jobs() -> int:
    """Return the default number of processes: one a GPU, or one a core without GPUs."""
    import torch

    return torch.cuda.device_count() or num_cores()


def _world_of(job: JobEnvironment, number: int) -> dict[str, str]:
    """Return torchrun's environment variables for the processes of a job to train together."""
    port = FIRST_PORT + (int(job.raw_job_id) * ROUNDS + number % ROUNDS) % PORTS
    return {
        "RANK": str(job.global_rank),
        "WORLD_SIZE": str(job.num_tasks),
        "LOCAL_RANK": str(job.local_rank),
        "MASTER_ADDR": job.hostnames[0],
        "MASTER_PORT": str(port),
    }


def _complain(message: str) -> None:
    if os.environ.get("RANK", "0") == "0":
        print(message, file=sys.stderr, flush=True)
