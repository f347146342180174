"""Training one run, from its config or from its newest checkpoint, by one process or by several."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from mnmt_data.store import PreparedData, file_lock, open_prepared
from mnmt_model.checkpoints import CHECKPOINTS, find_checkpoints, step_of
from mnmt_model.distributed.world import World, join_world, on_every_rank, on_first_rank
from mnmt_model.errors import Interrupted, MachineError, RunError, RunInUseError, SharedRunError, one_line
from mnmt_model.planning.experts import slot_warning
from mnmt_model.runs.attempts import next_attempt
from mnmt_model.runs.heartbeat import HeartbeatWriter, trained_elsewhere, waiting_advice
from mnmt_model.runs.kernels import check_ways, recorded_products, to_record, training_products
from mnmt_model.runs.run_config import RunConfig, new_record
from mnmt_model.runs.run_record import LOCK, RUN, RunRecord, read_run, utc_now, write_run
from mnmt_model.training.branch import start_branch, trunk_checkpoint, trunk_kernels
from mnmt_model.training.changes import first_change
from mnmt_model.training.interruption import Interruption
from mnmt_model.training.out_of_memory import is_out_of_memory, memory_advice
from mnmt_model.training.trainer import Trainer
from mnmt_model.training.watcher import HeartbeatWatcher, Watcher, announce
from mnmt_model.transformer.products import Products

_log = logging.getLogger(__name__)

LOST_SECONDS = 2.0
"""How long a process that has lost another waits before it ends: torchrun reports the first that ends, which
should be the one that knows the reason."""

LOCK_SECONDS = 0.5
"""How long to wait for a run's lock, which sweeps take for a moment to see whether it is free."""


def train(run: RunConfig, folder: Path, *, watchers: Sequence[Watcher] = ()) -> None:
    """Train a run to its end, from its newest checkpoint, unless it has ended already.

    All processes that torchrun starts train it together.

    Args:
        run: The run.
        folder: The run's folder, which is made if it is missing.
        watchers: Are called while the run is trained, in the first process.

    Raises:
        RunInUseError: If another process trains the run.
        MachineError: If this machine lacks what the run was begun with; its record stays as it is.
        RunError: If `folder` holds another run, or if training cannot continue; run.json then says why.
        Interrupted: If SIGTERM, SIGINT or SIGUSR1 has come; the run then has a checkpoint of its last step.
    """
    data = open_prepared(run.data)
    with Interruption() as interruption, join_world() as world, open_run(run, folder, data, world) as opened:
        if not opened.is_finished:
            watchers = [*opened.watchers, *watchers] if world.is_first else []
            if world.is_first and (warning := slot_warning(run.model)):
                _log.warning("%s: %s", run.name, warning)
            if run.train.compile:
                announce(watchers, "compiling the layers, about a minute")
            with closing(Trainer(run, folder, data, world, watchers, products=opened.products)) as trainer:
                stopped = trainer.train(interruption)
                seconds, peak = trainer.checkpoints.seconds, trainer.log.peak()
            opened.end(status="finished", stopped=stopped, wall_seconds=seconds, peak_flops=peak)


class OpenRun:
    """A run that this process trains, and that nobody else does; it keeps run.json.

    Args:
        folder: The run's folder.
        record: The run's record.
        writes: Whether this process is the one that writes.
    """

    def __init__(self, folder: Path, record: RunRecord, *, writes: bool) -> None:
        self.folder, self.record, self._writes = folder, record, writes
        self.watchers: Sequence[Watcher] = ()
        """What keeps the run's heartbeat going."""
        self.is_finished = record.status == "finished"
        """Whether training has ended, by now or before; nothing is written from then on."""

    @property
    def products(self) -> Products:
        """The ways of its matrix products."""
        return recorded_products(self.record.kernels)

    def end(self, **changes: Any) -> None:
        """Record how training ended."""
        self._write(finished=utc_now(), **changes)
        self.is_finished = True

    def leave(self) -> None:
        """Write nothing any more, since another process trains the run."""
        self.is_finished = True

    def _write(self, **changes: Any) -> None:
        if not self.is_finished:
            self.record = replace(self.record, **changes)
            if self._writes:
                write_run(self.folder, self.record)


@contextmanager
def open_run(run: RunConfig, folder: Path, data: PreparedData, world: World) -> Iterator[OpenRun]:
    """Lock a run, open its record, and write into it what interrupts training or goes wrong.

    Raises:
        RunInUseError: If another process trains it.
        MachineError: If this machine lacks what it was begun with; its record stays as it is.
        RunError: If `folder` holds another run.
    """
    with _run_lock(folder, world):
        on_first_rank(lambda: trunk_checkpoint(run, folder))
        record = on_first_rank(lambda: _next_record(run, folder, data))
        opened = OpenRun(folder, record, writes=world.is_first)
        if opened.is_finished:
            yield opened
            return
        on_every_rank(lambda: _check_machine(record, world))
        on_first_rank(lambda: write_run(folder, record))
        with _recorded(run, opened, data, world):
            opened.record = _with_kernels(record, run, folder, world)
            start_branch(run, folder, record)
            yield opened


@contextmanager
def _recorded(run: RunConfig, opened: OpenRun, data: PreparedData, world: World) -> Iterator[None]:
    """Keep the run's heartbeat going, and write into run.json what interrupts training or goes wrong.

    Raises:
        RunError: If memory is exhausted, or another process is gone.
    """
    with ExitStack() as stack:
        if world.is_first:
            heartbeat = HeartbeatWriter(opened.folder, step=opened.record.resumed_step, steps=run.train.steps)
            opened.watchers = [HeartbeatWatcher(stack.enter_context(closing(heartbeat)))]
        try:
            yield
        except SharedRunError:
            opened.leave()
            raise
        except MachineError:
            opened.end(status="interrupted")
            raise
        except Interrupted as error:
            opened.end(status="interrupted", error=str(error))
            raise
        except Exception as error:
            reason = _explanation(error, run, data, world)
            opened.end(status="failed", error=reason or one_line(error))
            if reason is None:
                raise
            raise RunError(reason) from None


def _explanation(error: Exception, run: RunConfig, data: PreparedData, world: World) -> str | None:
    """Return what to do about an error whose own message does not say it."""
    if is_out_of_memory(error):
        return memory_advice(run, data, world)
    if not world.lost_another(error):
        return None
    time.sleep(LOST_SECONDS)
    return (
        f"process {world.rank} lost another of the {world.size} ({one_line(error)}); "
        "see what ended that one, and start the run again: it goes on from its newest checkpoint"
    )


def _next_record(run: RunConfig, folder: Path, data: PreparedData) -> RunRecord:
    """Return the record with which a run is trained, or a finished run's with the role that it has now."""
    before = read_run(folder) if (folder / RUN).exists() else None
    record = matching_record(run, folder, data)
    if record is not None and record.status == "finished":
        return record if record == before else write_run(folder, record)
    fresh = new_record(run, folder, vocab_size=data.vocab.size, data=data)
    if record is None:
        record = replace(fresh, kernels=trunk_kernels(run, folder))
    record = replace(record, config=fresh.config, status="running", error=None)
    checkpoints = find_checkpoints(folder / CHECKPOINTS)
    step = step_of(checkpoints[-1]) if checkpoints else 0
    return next_attempt(record, before, step)


def matching_record(run: RunConfig, folder: Path, data: PreparedData) -> RunRecord | None:
    """Return the record in `folder` with the role that the run has now; None if the run has no checkpoint.

    Raises:
        RunError: If it is of another run, from which training cannot continue.
    """
    if not (folder / RUN).exists() or not find_checkpoints(folder / CHECKPOINTS):
        return None
    record = read_run(folder)
    if changed := first_change(record, new_record(run, folder, vocab_size=data.vocab.size, data=data)):
        raise RunError(
            f"{folder / RUN}: was trained with another {changed}; "
            "set it back, or remove the folder to train anew"
        )
    return replace(record, role=run.role)


def _check_machine(record: RunRecord, world: World) -> None:
    """Check that this machine has the ways that a run's products take; GPUs have their own.

    Raises:
        MachineError: If it lacks one.
    """
    try:
        if world.device.type == "cpu":
            check_ways(record)
    except RunError as error:
        raise MachineError(str(error)) from None


def _with_kernels(record: RunRecord, run: RunConfig, folder: Path, world: World) -> RunRecord:
    """Return the record with the ways of the run's products, which a new run measures on the first rank."""
    if record.kernels is None and world.device.type == "cpu":
        record = on_first_rank(lambda: _measured(record, run, folder, world))
        on_every_rank(lambda: _check_machine(record, world))
    return record


def _measured(record: RunRecord, run: RunConfig, folder: Path, world: World) -> RunRecord:
    products = training_products(record.model, record.vocab_size, run.train, processes=world.size)
    return write_run(folder, replace(record, kernels=to_record(products), absent=record.absent - {"kernels"}))


@contextmanager
def _run_lock(folder: Path, world: World) -> Iterator[None]:
    """Keep others from training the same run; the lock ends with the first process, however that ends."""
    with ExitStack() as stack:

        def claim() -> None:
            folder.mkdir(parents=True, exist_ok=True)
            lock = file_lock(folder / LOCK, name=folder, error=RunInUseError, seconds=LOCK_SECONDS)
            stack.enter_context(lock)
            if (beat := trained_elsewhere(folder)) is not None:
                raise RunInUseError(f"{folder}: {waiting_advice(beat)}")

        on_first_rank(claim)
        yield
