"""Choose the next run to train: sweeps on any number of machines share a study by claims of its runs."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from mnmt_data.jobs.claim import claim, is_free
from mnmt_data.store import open_prepared
from mnmt_data.stream import Mixture, open_stream
from mnmt_model.errors import RunError, RunInUseError
from mnmt_model.planning.parameters import count_parameters
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.runs.run_record import RUN, RunRecord, is_given_up, read_run, utc_now, write_run


def training_cost(run: RunConfig) -> int:
    """Return a number roughly proportional to a run's training time."""
    return count_parameters(run.model, 1).active_size * run.steps


def in_order(runs: Iterable[RunConfig]) -> list[RunConfig]:
    """Return runs in the order of training: the costliest first."""
    return sorted(runs, key=training_cost, reverse=True)


def read_if_begun(folder: Path) -> RunRecord | None:
    """Return the record of the run in `folder`; None if it has none yet."""
    return read_run(folder) if (folder / RUN).exists() else None


def has_ended(record: RunRecord | None) -> bool:
    """Return whether a run is finished, or has used up its attempts."""
    return record is not None and (
        record.status == "finished" or (record.status == "failed" and is_given_up(record))
    )


def can_start(run: RunConfig, folder: Path) -> bool:
    """Return whether a run has not ended, is not being trained, and can start.

    Args:
        run: The run.
        folder: Folder of the runs' folders.
    """
    path = folder / run.name
    return not has_ended(read_if_begun(path)) and is_free(path) and is_ready(run, folder)


def is_ready(run: RunConfig, folder: Path) -> bool:
    """Return whether a run is not a branch, or its trunk has reached the branch's first step.

    Args:
        run: The run.
        folder: Folder of all run records.
    """
    if run.branch is None:
        return True
    from mnmt_model.checkpoints import CHECKPOINTS, checkpoint_name

    branch, trunk = (folder / name / CHECKPOINTS for name in (run.name, run.branch.run))
    return branch.is_dir() or (trunk / checkpoint_name(run.branch.step)).is_dir()


def next_run(runs: Iterable[RunConfig], folder: Path) -> RunConfig | None:
    """Return the first run that can start, or None."""
    for run in runs:
        give_up_dead(run, folder / run.name)
        if can_start(run, folder):
            return run
    return None


def lost_trunk(run: RunConfig, folder: Path) -> str | None:
    """Return why a branch can never start, if its trunk has ended without the checkpoint it needs."""
    if run.branch is None or is_ready(run, folder) or not has_ended(read_if_begun(folder / run.branch.run)):
        return None
    return f"its trunk {run.branch.run} has ended without a checkpoint of step {run.branch.step}"


def give_up_dead(run: RunConfig, folder: Path) -> None:
    """Record a run as failed if its process was killed too often and no other process trains it."""
    record = read_if_begun(folder)
    if record is None or record.status != "running" or not is_given_up(record):
        return
    with suppress(RunInUseError), claim(folder, error=RunInUseError, seconds=0):
        error = f"its process was killed {record.attempts} times before a new checkpoint (out of memory?)"
        if read_run(folder) == record:
            write_run(folder, replace(record, status="failed", error=error, finished=utc_now()))


def check_batches(runs: Iterable[RunConfig], folder: Path) -> None:
    """Check that all remaining runs have batches, initial weights and trackers, before the first one starts.

    Args:
        runs: The runs.
        folder: Folder of the runs' folders.

    Raises:
        DataError: If data are missing or broken, or the longest pair does not fit into a batch.
        RunError: If the folder with the initial weights of a new run is missing, or a tracker out of reach.
    """
    from mnmt_model.training.trackers import check_trackers

    left = [run for run in runs if not has_ended(read_if_begun(folder / run.name))]
    for run in left:
        initial = run.train.initial
        if initial and not Path(initial).is_dir() and not (folder / run.name).is_dir():
            raise RunError(f"{run.name}: `initial` is {initial!r}, but there is no such folder of a run")
    streams = {repr((run.data, run.mixture, run.train.mixing, run.train.batch_tokens)): run for run in left}
    for run in streams.values():
        data, train = open_prepared(run.data), run.train
        open_stream(
            data, Mixture(dict(run.mixture)), train.mixing, batch_tokens=train.batch_tokens, seed=run.seed
        )
    check_trackers({name for run in left for name in run.train.trackers})


def check_records(runs: Iterable[RunConfig], folder: Path) -> None:
    """Check that training can continue from the records in `folder`, and update the roles of finished runs.

    Raises:
        RunError: If the study was changed since a run was trained.
        DataError: If there are no prepared data.
    """
    from mnmt_model.training.run import matching_record

    for run in runs:
        if (folder / run.name / RUN).exists():
            before, record = (
                read_run(folder / run.name),
                matching_record(run, folder / run.name, open_prepared(run.data)),
            )
            if record is not None and record.status == "finished" and record != before:
                write_run(folder / run.name, record)


def allow_retries(runs: Iterable[RunConfig], folder: Path) -> None:
    """Reset the attempts of failed runs, so that they are tried again."""
    for run in runs:
        record = read_if_begun(folder / run.name)
        if record is not None and record.status == "failed":
            write_run(folder / run.name, replace(record, status="interrupted", attempts=1))
