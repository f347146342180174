"""Continue a run from its record with the same settings, or start a branch from its trunk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any

from mnmt_data.prepare import recorded_changes
from mnmt_model.checkpoints import CHECKPOINTS, checkpoint_name, find_checkpoints, link_checkpoint
from mnmt_model.distributed.world import on_first_rank
from mnmt_model.errors import RunError
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.runs.run_data import PREPARE_THOSE
from mnmt_model.runs.run_record import RUN, RunRecord, read_run
from mnmt_model.train_config import free_settings

FIXED_KEYS = frozenset({"branch", "config", "mixture", "seed", "vocab_size"})
"""Keys of run.json that must not change for training to continue, besides the data."""
LENGTH = frozenset({"branch", "cooldown_steps", "steps"})
"""Settings in which a branch differs from its trunk."""


def check_same(
    path: Path, before: RunRecord, now: RunRecord, *, anew: str, free: Set[str] = frozenset()
) -> None:
    """Check that training can go on from an earlier record.

    Args:
        path: The file of the earlier record.
        before: The earlier record.
        now: The current record.
        anew: How to start anew instead, the end of the message.
        free: Names of further keys and settings that may change.

    Raises:
        RunError: If data or settings have changed; it names the first change.
    """
    if before.data_fingerprint != now.data_fingerprint and "data_fingerprint" not in before.absent:
        changes = recorded_changes(before.data_config or {}, now.data_config or {})
        change = f": {changes[0]}" if changes else ", of other text or another release"
        raise RunError(f"{path}: was trained on other prepared data{change}; {PREPARE_THOSE}, or {anew}")
    if changed := first_change(before, now, free=free):
        raise RunError(f"{path}: was trained with another {changed}; set it back, or {anew}")


def first_change(record: RunRecord, now: RunRecord, *, free: Set[str] = frozenset()) -> str | None:
    """Return the first forbidden change of a run, such as "config.model.d_model (64, now 128)".

    Args:
        record: The earlier record.
        now: The current record.
        free: Names of further keys and settings that may change.
    """
    keys, settings = FIXED_KEYS - record.absent - free, free_settings(record.config["train"]) | free
    return next(_changes(vars(record), vars(now), keys, settings), None)


def _changes(
    before: Mapping[str, Any], now: Mapping[str, Any], keys: Set[str], free: Set[str]
) -> Iterator[str]:
    """Yield the differences, such as "config.model.d_model (64, now 128)"."""
    for key in sorted(keys & before.keys()):
        old, new = before[key], now.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from (f"{key}.{change}" for change in _changes(old, new, (old | new).keys() - free, free))
        elif old != new:
            yield f"{key} ({old}, now {new})"


def trunk_checkpoint(run: RunConfig, folder: Path) -> Path | None:
    """Return the checkpoint of the trunk that a branch starts from; None if it has started or is no branch.

    Args:
        run: The run.
        folder: Its folder, beside the trunk's.

    Raises:
        RunError: If the trunk has not reached that step.
    """
    if run.branch is None or find_checkpoints(folder / CHECKPOINTS):
        return None
    trunk = folder.parent / run.branch.run
    checkpoint = trunk / CHECKPOINTS / checkpoint_name(run.branch.step)
    if checkpoint.is_dir():
        return checkpoint
    status = read_run(trunk).status if (trunk / RUN).is_file() else "not yet trained"
    lost = f"; it was trained without this horizon, so remove {trunk} first" if status == "finished" else ""
    raise RunError(
        f"{run.name}: leaves {run.branch.run} at step {run.branch.step}, of which that has no checkpoint "
        f"(it is {status}); train {run.branch.run} first{lost}"
    )


def start_branch(run: RunConfig, folder: Path, record: RunRecord) -> None:
    """Link the trunk's checkpoint as first checkpoint of a branch, unless started; every process calls this.

    Args:
        run: The run.
        folder: Its folder, beside the trunk's.
        record: Its record.

    Raises:
        RunError: If the trunk has not reached that step, has other settings, or its checkpoint has changed
            since it was written.
    """
    if checkpoint := on_first_rank(lambda: trunk_checkpoint(run, folder)):
        on_first_rank(lambda: _check_trunk(checkpoint.parent.parent, record))
        link_checkpoint(checkpoint, folder / CHECKPOINTS)


def _check_trunk(trunk: Path, record: RunRecord) -> None:
    anew = f"remove both folders to train anew, since {record.run} branches off it"
    check_same(trunk / RUN, read_run(trunk), record, anew=anew, free=LENGTH)
