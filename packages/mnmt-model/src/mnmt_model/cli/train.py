"""`mnmt-model train` and `sweep`: train one run of a study, or all of them."""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from mnmt_data.cli.console import Jobs
from mnmt_data.jobs.cluster import ClusterConfig
from mnmt_data.store import atomic_file
from mnmt_data.study import read_study
from mnmt_model.errors import Interrupted, RunError

if TYPE_CHECKING:
    from mnmt_data.jobs.workers import Workers
    from mnmt_model.runs.run_config import RunConfig
    from mnmt_model.sweep.run_queue import Outcome

CLUSTER_JOBS = 8
"""Default number of jobs of a sweep on a cluster."""

Have = Annotated[tuple[Path, ...], Parameter("--have", negative="")]


def train(study: Path, run: str, *, out: Annotated[Path | None, Parameter(("--out", "-o"))] = None) -> None:
    """Train one run of a study, or continue it from its newest checkpoint.

    Under torchrun (`torchrun --nproc-per-node 4 -m mnmt_model train …`), several processes train it together.

    Args:
        study: The study's TOML file.
        run: Name of the run, as in `sweep`.
        out: Folder of the study's results; `results/NAME` by default.
    """
    from mnmt_model.cli.progress import RunProgress
    from mnmt_model.planning.quantities import duration
    from mnmt_model.runs.run_record import read_run
    from mnmt_model.training.run import train as train_run

    configs, folder = study_runs(study, out)
    config = {candidate.name: candidate for candidate in configs}.get(run)
    if config is None:
        names = ", ".join(candidate.name for candidate in configs)
        raise RunError(f"{study}: has no run {run!r}; its runs are {names}")
    train_run(config, folder / run, watchers=[RunProgress(config, folder / run)])
    if os.environ.get("RANK", "0") == "0":
        print(f"trained for {duration(read_run(folder / run).wall_seconds or 0.0)}: {folder / run}")
        print(f"next: mnmt-eval score {folder / run}")


def sweep(
    study: Path,
    *,
    out: Annotated[Path | None, Parameter(("--out", "-o"))] = None,
    jobs: Jobs = None,
    cluster: Literal["local", "slurm"] = "local",
    config: Annotated[ClusterConfig, Parameter("*")] = ClusterConfig(),  # noqa: B008 - it is frozen
    have: Have = (),
    detach: Annotated[bool, Parameter(negative="")] = False,
    retry_failed: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Train every run of a study, several at a time.

    Any number of sweeps, on any machines that share the folder, train one study together. An interrupted
    sweep continues when it is started again. A failed run is tried once more, without stopping the others.
    The exit status is 1 if a run has failed, and 128 + the signal if the sweep was interrupted.

    Args:
        study: The study's TOML file.
        out: Folder of the study's results; `results/NAME` by default.
        jobs: Runs to train at a time; by default one a GPU, or one a core without GPUs, and 8 on a cluster.
        cluster: `local` trains on this machine, `slurm` in jobs that Slurm schedules.
        config: Resources that a job requests.
        have: A run table (CSV) whose runs are not trained again; may be given several times.
        detach: Submit the jobs to the cluster and exit; the same command without it watches them.
        retry_failed: Try failed runs again.
    """
    from mnmt_model.cli.progress import SweepProgress
    from mnmt_model.sweep.next_run import allow_retries, check_batches, check_records, in_order
    from mnmt_model.sweep.run_queue import RunQueue
    from mnmt_model.sweep.workers import default_jobs, local_workers

    if cluster == "local" and (detach or config != ClusterConfig()):
        raise RunError("--detach and options for jobs need --cluster slurm")
    runs, folder = study_runs(study, out, have=have)
    if not runs:
        return _report([], folder)
    jobs = jobs or (CLUSTER_JOBS if cluster == "slurm" else default_jobs())
    ordered = in_order(runs)
    check_records(ordered, folder)
    check_batches(ordered, folder)
    _copy_study(study, folder / "study.toml")
    if retry_failed:
        allow_retries(ordered, folder)
    progress = SweepProgress(runs, folder, jobs=jobs)
    if cluster == "local":
        workers: Workers = local_workers(ordered, folder, jobs=jobs, on_line=progress.warn)
    else:
        workers = _slurm_workers(ordered, folder, config)
    queue = RunQueue(ordered, folder, workers, jobs=jobs, watcher=progress)
    with closing(progress):
        if detach:
            queue.look()
        signum = 0 if detach else queue.train()
    status = _report(queue.outcomes(runs), folder)
    if cluster == "slurm" and (detach or signum):
        print(_farewell(folder.parent / "jobs", runs[0].study), file=sys.stderr)
    if signum:
        raise Interrupted(signum)
    return status


def _copy_study(study: Path, copy: Path) -> None:
    """Leave a study beside its runs, unless it lacks sizes of the one there, which it extends then."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    if not copy.exists() or _sizes(copy) <= _sizes(study):
        with atomic_file(copy) as file:
            file.write(study.read_bytes())


def _sizes(study: Path) -> set[str]:
    return set(tomllib.loads(study.read_text(encoding="utf-8-sig"))["sweep"]["sizes"])


def study_runs(
    path: Path, out: Path | None, *, have: Sequence[Path] = ()
) -> tuple[Sequence[RunConfig], Path]:
    """Return the runs of a study without those in the tables `have`, and the folder of their records."""
    from mnmt_model.sweep.run_table import runs_left
    from mnmt_model.sweep.study_runs import run_configs

    study = read_study(path)
    results = out or Path("results") / study.name
    runs = run_configs(study, results / "data")
    left = runs_left(runs, have)
    if have:
        tables = ", ".join(map(str, have))
        print(f"{len(runs) - len(left)} of {len(runs)} runs are left out: see {tables}", file=sys.stderr)
    return left, results / "runs"


def _slurm_workers(runs: Sequence[RunConfig], folder: Path, config: ClusterConfig) -> Workers:
    from mnmt_data.jobs.cluster import SlurmWorkers
    from mnmt_model.sweep.workers import ClusterWork

    work, name = ClusterWork(tuple(runs), folder.resolve()), f"mnmt-{runs[0].study}"
    return SlurmWorkers(work, folder=folder.parent / "jobs", name=name, config=config, detached=True)


def _farewell(logs: Path, study: str) -> str:
    """Return the message about jobs that outlive the command."""
    return (
        f"the jobs continue, with logs in {logs.resolve()}; the same command watches them, "
        f"`scancel --me --name=mnmt-{study}` ends them"
    )


def _report(outcomes: Sequence[Outcome], folder: Path) -> int:
    """Print failures, the count of finished runs, their time and the next command; return the exit status."""
    from mnmt_model.planning.quantities import duration

    failed = [outcome for outcome in outcomes if outcome.status == "failed"]
    for outcome in failed:
        print(f"failed: {outcome.run.name}: {outcome.error}")
    finished = [outcome for outcome in outcomes if outcome.status == "finished"]
    seconds = sum(outcome.wall_seconds for outcome in finished)
    times = f"; their training times add up to {duration(seconds)}" if finished else ""
    print(f"{len(finished)} of {len(outcomes)} runs finished in {folder}{times}")
    if failed:
        print("next: remove the cause, and the same command with --retry-failed tries them again")
    elif finished:
        print(f"next: mnmt-eval score {folder}, then mnmt-laws report {folder}")
    return int(bool(failed))
