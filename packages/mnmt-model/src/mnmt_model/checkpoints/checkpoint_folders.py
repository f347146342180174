"""Find the checkpoints of a run, by step and by dev loss."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from pathlib import Path

from mnmt_data.errors import folder_holds
from mnmt_model.checkpoints.state import STATE, read_progress
from mnmt_model.errors import RunError

CHECKPOINTS = "checkpoints"
_NAME = re.compile(r"step-(\d{8,})")


def checkpoint_name(step: int) -> str:
    """Return the name of the folder of a checkpoint."""
    return f"step-{step:08d}"


def step_of(checkpoint: Path) -> int:
    """Return the step of a checkpoint of training, from its name."""
    match = _NAME.fullmatch(checkpoint.name)
    if match is None:
        raise ValueError(
            f"`checkpoint` must be a folder such as {checkpoint_name(1000)}, but is {checkpoint}."
        )
    return int(match[1])


def find_checkpoints(folder: Path) -> list[Path]:
    """Return the complete checkpoints in `folder`, oldest first."""
    checkpoints = (path for path in folder.glob("step-*") if _NAME.fullmatch(path.name))
    return sorted(checkpoints, key=step_of)


def newest(path: Path) -> Path:
    """Return the newest checkpoint of the run in `path`, or `path` itself if it is a checkpoint or average.

    Raises:
        RunError: If it is none of these.
    """
    if not path.exists():
        raise RunError(f"{path}: no such run or checkpoint; {folder_holds(path)}.")
    checkpoints = [path] if (path / STATE).is_file() else find_checkpoints(path / CHECKPOINTS)
    if not checkpoints:
        raise RunError(
            f"{path}: holds no checkpoint; name the folder of a trained run, or a checkpoint in it."
        )
    return checkpoints[-1]


def by_dev_loss(checkpoints: Iterable[Path]) -> list[Path]:
    """Return the checkpoints with a dev loss, lowest loss first, ties newest first."""
    losses = {path: loss for path in checkpoints if (loss := _dev_loss(path)) is not None}
    return sorted(losses, key=lambda path: (losses[path], -step_of(path)))


def is_temporary(checkpoint: Path) -> bool:
    """Return whether a checkpoint is temporary, made between two regular ones; False if it is broken."""
    try:
        return read_progress(checkpoint).temporary
    except RunError:
        return False


def _dev_loss(checkpoint: Path) -> float | None:
    try:
        loss = read_progress(checkpoint).dev_loss
    except RunError:
        return None
    return loss if loss is not None and math.isfinite(loss) else None
