"""Reading checkpoints, at any number of processes and sharding, whatever wrote them."""

from __future__ import annotations

import logging
from pathlib import Path

from torch import nn
from torch.optim import Optimizer

from mnmt_model.checkpoints.finding import find_checkpoints, step_of
from mnmt_model.checkpoints.named_tensors import load_optimizer, load_tensors, model_tensors
from mnmt_model.checkpoints.state import MODEL, OPTIMIZER, Progress, check_files, files_of, read_state
from mnmt_model.checkpoints.tensor_files import TensorFiles
from mnmt_model.distributed.world import on_first_rank
from mnmt_model.errors import RunError

_log = logging.getLogger(__name__)


def restore_newest(folder: Path, model: nn.Module, optimizer: Optimizer) -> Progress | None:
    """Load the newest checkpoint in `folder` that is as it was written, in place; every rank calls this.

    A newer one that has changed is left out, with a warning.

    Returns:
        Where the run stood; None if there is no checkpoint.

    Raises:
        RunError: On every rank, if all have changed, or the checkpoint is of another model or optimiser.
    """
    checkpoint = on_first_rank(lambda: _newest_unchanged(folder))
    return None if checkpoint is None else restore(checkpoint, model, optimizer)


def restore(checkpoint: Path, model: nn.Module, optimizer: Optimizer) -> Progress:
    """Load a checkpoint into `model` and `optimizer`, in place, without comparing checksums.

    Raises:
        RunError: If it cannot be read, or is of another model or optimiser.
    """
    state = read_state(checkpoint)
    if state.averaged_steps:
        raise RunError(f"{checkpoint}: is an average, which training cannot go on from; name it as `initial`")
    # The weights last: making the optimiser's state takes a step, be it of rate 0.
    optimizer_files = TensorFiles(files_of(checkpoint, OPTIMIZER))
    load_optimizer(optimizer_files, model, optimizer, source=checkpoint)
    model_files = TensorFiles(files_of(checkpoint, MODEL))
    load_tensors(model_files, model_tensors(model), source=checkpoint, what="model")
    return state.progress


def load_model(checkpoint: Path, model: nn.Module) -> None:
    """Load the weights of a checkpoint, or of an average, into `model`, in place.

    Raises:
        RunError: If they have changed since they were written, or are of another model.
    """
    files = files_of(checkpoint, MODEL)
    check_files(files)
    load_tensors(TensorFiles(files), model_tensors(model), source=checkpoint, what="model")


def _newest_unchanged(folder: Path) -> Path | None:
    """The newest checkpoint whose files all are as they were written, None if there is no checkpoint."""
    reasons: list[str] = []
    for checkpoint in reversed(find_checkpoints(folder)):
        try:
            check_files(files_of(checkpoint))
        except RunError as error:
            reasons.append(str(error))
            continue
        if reasons:
            _log.warning("%s; training goes on from step %d", "; ".join(reasons), step_of(checkpoint))
        return checkpoint
    if reasons:
        reasons.append(f"no checkpoint is left; remove {folder} to train from the start")
        raise RunError("; ".join(reasons))
    return None
