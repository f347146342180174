"""Training one run, from its config or from its newest checkpoint, by one process or by several."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from mnmt_data.store import PreparedData, file_lock, open_prepared
from mnmt_model.checkpoints import CHECKPOINTS, find_checkpoints, step_of
from mnmt_model.distributed.world import World, join_world, on_first_rank
from mnmt_model.errors import Interrupted, RunError, RunInUseError, one_line
from mnmt_model.runs.attempts import next_attempt
from mnmt_model.runs.heartbeat import HeartbeatWriter
from mnmt_model.runs.kernels import products_to_train, recorded_products, to_record
from mnmt_model.runs.run_config import RunConfig, new_record
from mnmt_model.runs.run_record import LOCK, RUN, RunRecord, read_run, utc_now, write_run
from mnmt_model.training.branch import start_branch, trunk_checkpoint, trunk_kernels
from mnmt_model.training.changes import first_change
from mnmt_model.training.interruption import Interruption
from mnmt_model.training.out_of_memory import is_out_of_memory, memory_advice
from mnmt_model.training.single_model import single_trainer
from mnmt_model.training.watcher import HeartbeatWatcher, Watcher

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
        RunError: If `folder` holds another run, or if training cannot continue; run.json then says why.
        Interrupted: If SIGTERM, SIGINT or SIGUSR1 has come; the run then has a checkpoint of its last step.
    """
    data = open_prepared(run.data)
    with Interruption() as interruption, join_world() as world, _run_lock(folder, world):
        on_first_rank(lambda: trunk_checkpoint(run, folder))
        record = on_first_rank(lambda: _with_kernels(_open_record(run, folder, data), run, folder, world))
        if record.status != "finished":
            with _recorded(run, folder, data, record, world) as (end, heartbeat):
                watchers = [*heartbeat, *watchers] if world.is_first else []
                start_branch(run, folder, record)
                products = recorded_products(record.kernels)
                trainer = single_trainer(run, folder, data, world, watchers, products=products)
                (state,) = trainer.runs
                with closing(trainer):
                    trainer.train(interruption)
                    stopped = state.finish()
                peak = state.log.peak()
                end(status="finished", stopped=stopped, wall_seconds=state.seconds, peak_flops=peak)


@contextmanager
def _recorded(
    run: RunConfig, folder: Path, data: PreparedData, record: RunRecord, world: World
) -> Iterator[tuple[Callable[..., None], Sequence[Watcher]]]:
    """Write into run.json how training ended: what `end` is given, or what interrupted it or went wrong.

    Yields:
        `end`, and what keeps the run's heartbeat going; it is nothing on processes other than the first.

    Raises:
        RunError: If memory is exhausted, or another process is gone.
    """

    def end(**changes: Any) -> None:
        if world.is_first:
            write_run(folder, replace(record, finished=utc_now(), **changes))

    with ExitStack() as stack:
        heartbeat = HeartbeatWriter(folder, steps=run.train.steps) if world.is_first else None
        if heartbeat:
            stack.enter_context(closing(heartbeat))
        try:
            yield end, [HeartbeatWatcher(heartbeat)] if heartbeat else []
        except Interrupted as error:
            end(status="interrupted", error=str(error))
            raise
        except Exception as error:
            reason = _explanation(error, run, data, world)
            end(status="failed", error=reason or one_line(error))
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


def _open_record(run: RunConfig, folder: Path, data: PreparedData) -> RunRecord:
    """Return the run's record, which says that it is training: a new one, or that in `folder`."""
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
    return write_run(folder, next_attempt(record, before, step))


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


def _with_kernels(record: RunRecord, run: RunConfig, folder: Path, world: World) -> RunRecord:
    """Return the record with the ways of the run's products, which a new run measures."""
    if record.status == "finished" or world.device.type != "cpu":
        return record
    products = products_to_train(record, run.train, processes=world.size)
    if record.kernels is not None:
        return record
    return write_run(folder, replace(record, kernels=to_record(products), absent=record.absent - {"kernels"}))


@contextmanager
def _run_lock(folder: Path, world: World) -> Iterator[None]:
    """Keep others from training the same run; the lock ends with the first process, however that ends."""
    with ExitStack() as stack:

        def claim() -> None:
            folder.mkdir(parents=True, exist_ok=True)
            lock = file_lock(folder / LOCK, name=folder, error=RunInUseError, seconds=LOCK_SECONDS)
            stack.enter_context(lock)

        on_first_rank(claim)
        yield
