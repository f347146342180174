"""Which run is trained next: sweeps on any number of machines share a study by the locks of its runs."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mnmt_data.store import file_lock, is_locked, open_prepared
from mnmt_data.stream import Mixture, open_stream
from mnmt_model.errors import RunInUseError, SharedRunError
from mnmt_model.planning.parameters import count_parameters
from mnmt_model.runs.attempts import is_given_up
from mnmt_model.runs.heartbeat import Heartbeat, sharing_advice, trained_elsewhere
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.runs.run_record import LOCK, RUN, RunRecord, read_run, utc_now, write_run
from mnmt_model.sweep.horizons import is_ready

Unit = tuple[RunConfig, ...]
"""Runs that one process trains together: one run, or a pack."""
WAIT_SECONDS = 1.0
"""Seconds between two looks at runs of a machine that may be dead."""


def training_cost(run: RunConfig) -> int:
    """Return a number that a run's training time is about proportional to."""
    return count_parameters(run.model, 1).active_size * run.steps


def units_of(runs: Sequence[RunConfig], folder: Path, *, jobs: int = 1, packs: bool = True) -> list[Unit]:
    """Return the units of a study, the costliest first.

    Args:
        runs: The runs of the study.
        folder: Folder of the runs' folders; runs that were begun as a pack stay one.
        jobs: Units that are trained at a time.
        packs: Whether runs that have not begun may become packs, which one process trains.
    """
    # It imports torch, which nobody needs to look at a study.
    from mnmt_model.sweep.packs import plan_units

    units = current_units(plan_units(runs, folder, jobs=jobs, packs=packs), folder)
    return sorted(units, key=lambda unit: sum(map(training_cost, unit)), reverse=True)


def read_if_begun(folder: Path) -> RunRecord | None:
    """Return the record of the run in `folder`; None before it has one."""
    return read_run(folder) if (folder / RUN).exists() else None


def has_ended(record: RunRecord | None) -> bool:
    """Return whether a run is finished, or has failed for good."""
    return record is not None and (
        record.status == "finished" or (record.status == "failed" and is_given_up(record))
    )


def current_units(units: Sequence[Unit], folder: Path) -> list[Unit]:
    """Return the units as the records of their runs have them by now.

    Runs that have begun as a pack are together, also those of it that have ended, since they go on together.
    Those of a pack that has given them back are units of their own, and so is each that was begun alone.

    Args:
        units: Units of the study, in the order in which they should be trained.
        folder: Folder of the runs' folders.
    """
    runs = {run.name: run for unit in units for run in unit}
    packs = {run.name: _pack(run, unit, folder) for unit in units for run in unit}
    current: dict[tuple[str, ...], None] = {}
    for unit in units:
        rest = tuple(run.name for run in unit if not packs[run.name])
        for run in unit:
            pack = packs[run.name]
            # One that has left its pack ends it for the others.
            is_whole = all(packs.get(name) == pack for name in pack)
            current[(pack or rest) if is_whole else (run.name,)] = None
    return [tuple(runs[name] for name in names) for names in current]


def _pack(run: RunConfig, unit: Unit, folder: Path) -> tuple[str, ...]:
    """Return the runs that one of `unit` is trained with, itself included; none if that is not decided."""
    record = read_if_begun(folder / run.name)
    if record is not None and record.pack:
        return tuple(record.pack)
    if len(unit) == 1 or has_ended(record) or lost_trunk(run, folder):
        return (run.name,)
    from mnmt_model.training.pack import recorded_pack

    return recorded_pack(folder / run.name)


def unlocked(units: Sequence[Unit], folder: Path) -> Iterator[tuple[Unit, Heartbeat | None]]:
    """Yield the units that have not ended and are not locked, and who says nevertheless that it trains them.

    A run is claimed by its lock, which ends with the process that trains it, however that ends. The heartbeat
    of another machine may outlive it for up to a minute, and the unit waits for its end: it may also be that
    locks do not hold between the machines.
    """
    for unit in current_units(units, folder):
        left = [run for run in unit if not has_ended(read_if_begun(folder / run.name))]
        beats = [trained_elsewhere(folder / run.name) for run in left]  # before the locks: see `check_locks`
        locked = any(is_locked(folder / run.name / LOCK) for run in left)
        if left and not locked and all(is_ready(run, folder) for run in left):
            yield unit, next((beat for beat in beats if beat is not None), None)


def check_locks(
    units: Sequence[tuple[Unit, Heartbeat | None]], before: Mapping[str, Heartbeat]
) -> dict[str, Heartbeat]:
    """Return {run: heartbeat of another machine} of units without a lock.

    A process that has renewed its heartbeat since the last look held its lock all the time; if that was free
    here, locks do not hold between the machines.

    Args:
        units: What `unlocked` yields.
        before: What this function returned at the last look.

    Raises:
        SharedRunError: If locks do not hold.
    """
    beats = {unit[0].name: beat for unit, beat in units if beat is not None}
    for name, beat in beats.items():
        old = before.get(name)
        if old is not None and old.process == beat.process and old.time < beat.time:
            raise SharedRunError(f"{name}: {sharing_advice(beat)}")
    return beats


def next_unit(units: Sequence[Unit], folder: Path) -> Unit | None:
    """Return the first unit that could be trained; None if there is none.

    Units of a machine that may have died are waited for.
    """
    while free := list(unlocked(units, folder)):
        if (unit := next((unit for unit, beat in free if beat is None), None)) is not None:
            return unit
        time.sleep(WAIT_SECONDS)
    return None


def without(units: Sequence[Unit], names: Collection[str]) -> list[Unit]:
    """Return the units without the runs of these names."""
    rest = (tuple(run for run in unit if run.name not in names) for unit in units)
    return [unit for unit in rest if unit]


def lost_trunk(run: RunConfig, folder: Path) -> str | None:
    """Return why a branch can never start, if its trunk has ended without the step where it leaves."""
    if run.branch is None or is_ready(run, folder) or not has_ended(read_if_begun(folder / run.branch.run)):
        return None
    return f"its trunk {run.branch.run} has ended without a checkpoint of step {run.branch.step}"


def give_up_dead(run: RunConfig, folder: Path) -> None:
    """Record a run as failed whose process was killed too often, if no other process trains it."""
    record = read_if_begun(folder)
    if record is None or record.status != "running" or not is_given_up(record) or trained_elsewhere(folder):
        return
    try:
        with file_lock(folder / LOCK, name=folder, error=RunInUseError):
            error = f"its process was killed {record.attempts} times before a new checkpoint (out of memory?)"
            if read_run(folder) == record:
                write_run(folder, replace(record, status="failed", error=error, finished=utc_now()))
    except RunInUseError:
        pass


def check_batches(units: Sequence[Unit], folder: Path) -> None:
    """Check that there are batches for every run that is left, before the first of them is begun.

    Args:
        units: The runs.
        folder: Folder of the runs' folders.

    Raises:
        DataError: If data are missing or broken, or the longest pair does not fit into a batch.
    """
    left = [run for unit in units for run in unit if not has_ended(read_if_begun(folder / run.name))]
    streams = {repr((run.data, run.mixture, run.train.mixing, run.train.batch_tokens)): run for run in left}
    for run in streams.values():
        data, train = open_prepared(run.data), run.train
        open_stream(
            data, Mixture(dict(run.mixture)), train.mixing, batch_tokens=train.batch_tokens, seed=run.seed
        )


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
