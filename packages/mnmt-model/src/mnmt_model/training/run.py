"""Training one run, from its plan or from its newest checkpoint, by one process or by several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from mnmt_data.store import PreparedData, file_lock, open_prepared
from mnmt_model.checkpoints import CHECKPOINTS, find_checkpoints
from mnmt_model.distributed.world import World, joined_world, on_first_rank
from mnmt_model.errors import RunError, one_line
from mnmt_model.runs.run_config import RunConfig, new_record
from mnmt_model.runs.run_record import RUN, RunRecord, read_run, utc_now, write_run
from mnmt_model.training.trainer import Trainer
from mnmt_model.training.watcher import Watcher

TRAINED_WITH = frozenset({"config", "mixture", "seed", "vocab_size", "data_fingerprint"})
"""What of run.json must stay as it is for training to go on."""

FREE = frozenset(
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
"""Settings of [train] that change how a run is computed and kept, and not what it learns."""


def train(plan: RunConfig, folder: Path, *, watchers: Sequence[Watcher] = ()) -> None:
    """Train the run in `folder` to its end, going on from its newest checkpoint, if it has not ended yet.

    Started by torchrun, all processes train it together.

    Args:
        plan: What to train.
        folder: The run record; made if missing.
        watchers: Are told how it goes, in the first process.

    Raises:
        RunError: If `folder` holds another run or another process trains it, or training cannot go on;
            run.json then says why.
    """
    data = open_prepared(plan.data)
    with joined_world() as world, _exclusively(folder, world):
        record = on_first_rank(lambda: _open_record(plan, folder, data))
        if record.status != "finished":
            _train(plan, folder, data, record, world, watchers if world.is_first else ())


def _train(
    plan: RunConfig,
    folder: Path,
    data: PreparedData,
    record: RunRecord,
    world: World,
    watchers: Sequence[Watcher],
) -> None:
    """Train what is left, and write into run.json how it ended."""

    def end(**changes: Any) -> None:
        if world.is_first:
            write_run(folder, replace(record, finished=utc_now(), **changes))

    try:
        trainer = Trainer(plan, folder, data, world, watchers)
        with closing(trainer):
            stopped = trainer.run()
    except Exception as error:
        end(status="failed", error=one_line(error))
        if world.lost_another(error):
            raise RunError(
                f"process {world.rank} lost another of the {world.size} ({one_line(error)}); "
                "see what ended that one, and start the run again: it goes on from its newest checkpoint"
            ) from None
        raise
    peak = trainer.log.peak()
    end(status="finished", stopped=stopped, wall_seconds=trainer.seconds, peak_flops=peak)


def _open_record(plan: RunConfig, folder: Path, data: PreparedData) -> RunRecord:
    """run.json of this plan: written anew, or the one there if it is of the same plan."""
    fresh = new_record(plan, folder, vocab_size=data.vocab.size, data=data)
    if not (folder / RUN).exists() or not find_checkpoints(folder / CHECKPOINTS):
        return write_run(folder, fresh)
    record = read_run(folder)
    if changed := next(_changes(vars(record), vars(fresh), TRAINED_WITH - record.absent), None):
        raise RunError(
            f"{folder / RUN}: was trained with another {changed}; "
            "set it back, or remove the folder to train anew"
        )
    if record.status != "finished":
        record = replace(record, config=fresh.config, status="running", error=None)
    elif record.role == plan.role:
        return record
    return write_run(folder, replace(record, role=plan.role))


def _changes(before: Mapping[str, Any], now: Mapping[str, Any], keys: Set[str]) -> Iterator[str]:
    """What differs, such as "config.model.d_model (64, now 128)"."""
    for key in sorted(keys & before.keys()):
        old, new = before[key], now.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from (f"{key}.{change}" for change in _changes(old, new, (old | new).keys() - FREE))
        elif old != new:
            yield f"{key} ({old}, now {new})"


@contextmanager
def _exclusively(folder: Path, world: World) -> Iterator[None]:
    """Keep others from training the same run; the lock ends with the first process, however that ends."""
    with ExitStack() as stack:

        def lock() -> None:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(file_lock(folder / ".lock", name=folder, error=RunError))

        on_first_rank(lock)
        yield
