"""Which run is trained next: sweeps on any number of machines share a study by the locks of its runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from mnmt_data.store import file_lock, is_locked, open_prepared
from mnmt_model.errors import RunInUseError
from mnmt_model.planning.parameters import count_parameters
from mnmt_model.runs.attempts import is_given_up
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.runs.run_record import LOCK, RUN, RunRecord, read_run, utc_now, write_run
from mnmt_model.sweep.horizons import is_ready

Unit = tuple[RunConfig, ...]
"""Runs that one process trains together: one run, or a pack."""


def training_cost(run: RunConfig) -> int:
    """Return a number that a run's training time is about proportional to."""
    return count_parameters(run.model, 1).active_size * run.steps


def units_of(runs: Sequence[RunConfig], folder: Path, *, jobs: int = 1) -> list[Unit]:
    """Return the units of a study, the costliest first.

    Args:
        runs: The runs of the study.
        folder: Folder of the runs' folders, which may hold runs that were begun as a pack.
        jobs: Units that are trained at a time.
    """
    # It imports torch, which nobody needs to look at a study.
    from mnmt_model.sweep.packs import plan_units

    return sorted(
        plan_units(runs, folder, jobs=jobs), key=lambda unit: sum(map(training_cost, unit)), reverse=True
    )


def read_if_begun(folder: Path) -> RunRecord | None:
    """Return the record of the run in `folder`; None before it has one."""
    return read_run(folder) if (folder / RUN).exists() else None


def has_ended(record: RunRecord | None) -> bool:
    """Return whether a run is finished, or has failed for good."""
    return record is not None and (
        record.status == "finished" or (record.status == "failed" and is_given_up(record))
    )


def claimable(units: Sequence[Unit], folder: Path) -> Iterator[Unit]:
    """Yield the units that could be trained now, each without the runs of it that have ended.

    Runs that were begun as a pack are yielded with all others of it, since they go on together.

    A run is claimed by its lock, which ends with the process that trains it, however that ends.

    Args:
        units: Units of the study, in the order in which they should be trained.
        folder: Folder of the runs' folders.
    """
    for unit in units:
        left = tuple(run for run in unit if not has_ended(read_if_begun(folder / run.name)))
        locked = any(is_locked(folder / run.name / LOCK) for run in left)
        if left and not locked and all(is_ready(run, folder) for run in left):
            yield unit if any(_pack(run, folder) for run in left) else left


def _pack(run: RunConfig, folder: Path) -> Sequence[str]:
    record = read_if_begun(folder / run.name)
    return (record.pack or ()) if record else ()


def next_unit(units: Sequence[Unit], folder: Path) -> Unit | None:
    """Return the first unit that could be trained now; None if there is none."""
    return next(claimable(units, folder), None)


def lost_trunk(run: RunConfig, folder: Path) -> str | None:
    """Return why a branch can never start, if its trunk has ended without the step where it leaves."""
    if run.branch is None or is_ready(run, folder) or not has_ended(read_if_begun(folder / run.branch.run)):
        return None
    return f"its trunk {run.branch.run} has ended without a checkpoint of step {run.branch.step}"


def give_up_dead(run: RunConfig, folder: Path) -> None:
    """Record a run as failed whose process was killed too often, if no other process trains it."""
    record = read_if_begun(folder)
    if record is None or record.status != "running" or not is_given_up(record):
        return
    try:
        with file_lock(folder / LOCK, name=folder, error=RunInUseError):
            error = f"its process was killed {record.attempts} times before a new checkpoint (out of memory?)"
            if read_run(folder) == record:
                write_run(folder, replace(record, status="failed", error=error, finished=utc_now()))
    except RunInUseError:
        pass


def check_records(units: Sequence[Unit], folder: Path) -> None:
    """Check that training can continue from what is in `folder`, and give finished runs their present roles.

    Raises:
        RunError: If the study was changed since a run was trained.
        DataError: If there are no prepared data.
    """
    from mnmt_model.training.run import matching_record

    for run in (run for unit in units for run in unit):
        if (folder / run.name / RUN).exists():
            before, record = (
                read_run(folder / run.name),
                matching_record(run, folder / run.name, open_prepared(run.data)),
            )
            if record is not None and record.status == "finished" and record != before:
                write_run(folder / run.name, record)


def allow_retries(units: Sequence[Unit], folder: Path) -> None:
    """Let runs that have failed for good be tried again."""
    for run in (run for unit in units for run in unit):
        record = read_if_begun(folder / run.name)
        if record is not None and record.status == "failed":
            write_run(folder / run.name, replace(record, status="interrupted", attempts=1))
