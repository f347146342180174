"""Training one run, from its config or from its newest checkpoint, by one process or by several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from mnmt_data.store import PreparedData, file_lock, open_prepared
from mnmt_model.checkpoints import CHECKPOINTS, find_checkpoints
from mnmt_model.distributed.world import World, join_world, on_first_rank
from mnmt_model.errors import RunError, one_line
from mnmt_model.runs.heartbeat import HeartbeatWriter
from mnmt_model.runs.kernels import products_to_train, recorded_products, to_record
from mnmt_model.runs.run_config import RunConfig, new_record
from mnmt_model.runs.run_record import LOCK, RUN, RunRecord, read_run, utc_now, write_run
from mnmt_model.training.single_model import single_trainer
from mnmt_model.training.watcher import HeartbeatWatcher, Watcher

FIXED_KEYS = frozenset({"config", "mixture", "seed", "vocab_size", "data_fingerprint"})
"""Keys of run.json that must not change for training to continue."""

FREE_SETTINGS = frozenset(
    {
        "accumulation",
        "activation_checkpointing",
        "checkpoint_every",
        "compile",
        "exchange_chunks",
        "expert_parallel",
        "keep_best",
        "keep_checkpoints",
        "log_every",
        "parallel",
        "tensorboard",
    }
)
"""Settings of `[train]` that change how a run is computed and stored, but not what it learns."""


def train(run: RunConfig, folder: Path, *, watchers: Sequence[Watcher] = ()) -> None:
    """Train a run to its end, from its newest checkpoint, unless it has ended already.

    All processes that torchrun starts train it together.

    Args:
        run: The run.
        folder: The run's folder, which is made if it is missing.
        watchers: Are called while the run is trained, in the first process.

    Raises:
        RunError: If `folder` holds another run, if another process trains it, or if training cannot continue;
            run.json then says why.
    """
    data = open_prepared(run.data)
    with join_world() as world, _run_lock(folder, world):
        record = on_first_rank(lambda: _with_kernels(_open_record(run, folder, data), run, folder, world))
        if record.status != "finished":
            with ExitStack() as stack:
                if world.is_first:
                    heartbeat = HeartbeatWriter(folder, steps=run.train.steps)
                    watchers = [HeartbeatWatcher(stack.enter_context(closing(heartbeat))), *watchers]
                _train(run, folder, data, record, world, watchers if world.is_first else ())


def _train(
    run: RunConfig,
    folder: Path,
    data: PreparedData,
    record: RunRecord,
    world: World,
    watchers: Sequence[Watcher],
) -> None:
    """Train the remaining steps, and write into run.json how training ended."""

    def end(**changes: Any) -> None:
        if world.is_first:
            write_run(folder, replace(record, finished=utc_now(), **changes))

    try:
        trainer = single_trainer(
            run, folder, data, world, watchers, products=recorded_products(record.kernels)
        )
        (state,) = trainer.runs
        with closing(trainer):
            trainer.train()
            stopped = state.finish()
    except Exception as error:
        end(status="failed", error=one_line(error))
        if world.lost_another(error):
            raise RunError(
                f"process {world.rank} lost another of the {world.size} ({one_line(error)}); "
                "see what ended that one, and start the run again: it goes on from its newest checkpoint"
            ) from None
        raise
    end(status="finished", stopped=stopped, wall_seconds=state.seconds, peak_flops=state.log.peak())


def _open_record(run: RunConfig, folder: Path, data: PreparedData) -> RunRecord:
    """Return the run's record: a new one, or that in `folder` if it is of the same run."""
    fresh = new_record(run, folder, vocab_size=data.vocab.size, data=data)
    if not (folder / RUN).exists() or not find_checkpoints(folder / CHECKPOINTS):
        return write_run(folder, fresh)
    record = read_run(folder)
    if changed := next(_changes(vars(record), vars(fresh), FIXED_KEYS - record.absent), None):
        raise RunError(
            f"{folder / RUN}: was trained with another {changed}; "
            "set it back, or remove the folder to train anew"
        )
    if record.status != "finished":
        record = replace(record, config=fresh.config, status="running", error=None)
    elif record.role == run.role:
        return record
    return write_run(folder, replace(record, role=run.role))


def _with_kernels(record: RunRecord, run: RunConfig, folder: Path, world: World) -> RunRecord:
    """Return the record with the ways of the run's products, which a new run measures."""
    if record.status == "finished" or world.device.type != "cpu":
        return record
    products = products_to_train(record, run.train, processes=world.size)
    if record.kernels is not None:
        return record
    return write_run(folder, replace(record, kernels=to_record(products), absent=record.absent - {"kernels"}))


def _changes(before: Mapping[str, Any], now: Mapping[str, Any], keys: Set[str]) -> Iterator[str]:
    """Yield what differs, such as "config.model.d_model (64, now 128)"."""
    for key in sorted(keys & before.keys()):
        old, new = before[key], now.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from (
                f"{key}.{change}" for change in _changes(old, new, (old | new).keys() - FREE_SETTINGS)
            )
        elif old != new:
            yield f"{key} ({old}, now {new})"


@contextmanager
def _run_lock(folder: Path, world: World) -> Iterator[None]:
    """Keep others from training the same run; the lock ends with the first process, however that ends."""
    with ExitStack() as stack:

        def lock() -> None:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(file_lock(folder / LOCK, name=folder, error=RunError))

        on_first_rank(lock)
        yield
