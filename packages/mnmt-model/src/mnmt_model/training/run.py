"""Train one run, from its config or its newest checkpoint, in one process or several."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from mnmt_data.jobs.claim import HeartbeatWriter, claim
from mnmt_data.store import PreparedData, open_prepared
from mnmt_model.checkpoints import CHECKPOINTS, find_checkpoints, step_of
from mnmt_model.distributed.world import World, join_world, on_first_rank
from mnmt_model.errors import Interrupted, RunError, RunInUseError, one_line
from mnmt_model.planning.experts import slot_warning
from mnmt_model.runs.run_config import RunConfig, new_record
from mnmt_model.runs.run_record import RUN, RunRecord, Status, next_attempt, read_run, utc_now, write_run
from mnmt_model.training.continuation import check_same, start_branch, trunk_checkpoint
from mnmt_model.training.failures import explain
from mnmt_model.training.interruption import Interruption
from mnmt_model.training.trainer import Trainer
from mnmt_model.training.watcher import HeartbeatWatcher, Watcher

_log = logging.getLogger(__name__)


def train(run: RunConfig, folder: Path, *, watchers: Sequence[Watcher] = ()) -> None:
    """Train a run to its end, from its newest checkpoint, unless it is finished.

    All processes of torchrun train it together.

    Args:
        run: The run.
        folder: The run's folder, created if missing.
        watchers: Called by the first process during training.

    Raises:
        RunInUseError: If another process trains the run.
        RunError: If `folder` holds another run, or training fails; run.json then has the reason.
        Interrupted: After SIGTERM, SIGINT or SIGUSR1; the run then has a checkpoint of its last step.
    """
    data = open_prepared(run.data)
    with Interruption() as interruption, join_world() as world, _run_lock(folder, world):
        on_first_rank(lambda: trunk_checkpoint(run, folder))
        record = on_first_rank(lambda: _next_record(run, folder, data))
        if record.status == "finished":
            return
        on_first_rank(lambda: write_run(folder, record))
        with _heartbeat(run, record, folder, world) as heartbeat, _recorded(run, folder, data, world) as end:
            start_branch(run, folder, record)
            watchers = [*heartbeat, *watchers] if world.is_first else []
            _announce(run, watchers, world)
            with closing(Trainer(run, folder, data, world, watchers)) as trainer:
                stopped = trainer.train(interruption)
                seconds, peak = trainer.checkpoints.seconds, trainer.log.peak()
            end(stopped=stopped, wall_seconds=seconds, peak_flops=peak)


def _announce(run: RunConfig, watchers: Sequence[Watcher], world: World) -> None:
    if world.is_first and (warning := slot_warning(run.model)):
        _log.warning("%s: %s", run.name, warning)
    if run.train.compile:
        for watcher in watchers:
            watcher.announce("compiling the layers, about a minute")


@contextmanager
def _heartbeat(run: RunConfig, record: RunRecord, folder: Path, world: World) -> Iterator[list[Watcher]]:
    """Write the run's heartbeat in the first process; yield its watchers."""
    if not world.is_first:
        yield []
        return
    with closing(HeartbeatWriter(folder, step=record.resumed_step, steps=run.train.steps)) as heartbeat:
        yield [HeartbeatWatcher(heartbeat)]


@contextmanager
def _recorded(
    run: RunConfig, folder: Path, data: PreparedData, world: World
) -> Iterator[Callable[..., None]]:
    """Record interruptions and failures in run.json; yield the function that records the end.

    Raises:
        RunError: If memory is exhausted, or another process has ended.
    """

    def end(status: Status = "finished", **changes: Any) -> None:
        if world.is_first:
            write_run(folder, replace(read_run(folder), status=status, finished=utc_now(), **changes))

    try:
        yield end
    except Interrupted as error:
        end("interrupted", error=str(error))
        raise
    except Exception as error:
        reason = explain(error, run, data, world)
        end("failed", error=reason or one_line(error))
        if reason is None:
            raise
        raise RunError(reason) from None


def _next_record(run: RunConfig, folder: Path, data: PreparedData) -> RunRecord:
    """Return the record to train a run with, or a finished run's record with its current role."""
    before = read_run(folder) if (folder / RUN).exists() else None
    record = matching_record(run, folder, data)
    if record is not None and record.status == "finished":
        return record if record == before else write_run(folder, record)
    fresh = new_record(run, folder, vocab_size=data.vocab.size, data=data)
    if record is None:
        record = fresh
    record = replace(record, config=fresh.config, status="running", error=None)
    checkpoints = find_checkpoints(folder / CHECKPOINTS)
    step = step_of(checkpoints[-1]) if checkpoints else 0
    return next_attempt(record, before, step)


def matching_record(run: RunConfig, folder: Path, data: PreparedData) -> RunRecord | None:
    """Return the record in `folder` with the run's current role; None if the run has no checkpoint.

    Raises:
        RunError: If the record is of a run with other settings.
    """
    if not (folder / RUN).exists() or not find_checkpoints(folder / CHECKPOINTS):
        return None
    record = read_run(folder)
    now = new_record(run, folder, vocab_size=data.vocab.size, data=data)
    check_same(folder / RUN, record, now, anew="remove the folder to train anew")
    return replace(record, role=run.role)


@contextmanager
def _run_lock(folder: Path, world: World) -> Iterator[None]:
    """Claim the run; the claim ends with the block or the first process."""
    with ExitStack() as stack:
        on_first_rank(lambda: stack.enter_context(claim(folder, error=RunInUseError)))
        yield
