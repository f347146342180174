"""Write checkpoints, and read them with any number of processes and any sharding."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

from torch import Tensor, nn
from torch.optim import Optimizer

from mnmt_model.checkpoints.atomic_folder import atomic_folder, remove, remove_leftovers
from mnmt_model.checkpoints.checkpoint_folders import (
    by_dev_loss,
    checkpoint_name,
    find_checkpoints,
    is_temporary,
    step_of,
)
from mnmt_model.checkpoints.named_tensors import (
    load_optimizer,
    load_weights,
    model_tensors,
    optimizer_tensors,
)
from mnmt_model.checkpoints.state import (
    MODEL,
    OPTIMIZER,
    FileRecord,
    Progress,
    State,
    check_files,
    files_of,
    read_state,
    record_file,
    write_state,
)
from mnmt_model.checkpoints.tensor_files import Part, TensorFiles, write_tensors
from mnmt_model.distributed.shards import is_first_holder, is_sharded, local_part
from mnmt_model.distributed.world import on_every_rank, on_first_rank, rank_and_size
from mnmt_model.errors import RunError

_Share = Mapping[str, Part]
"""{name of a tensor: the part of it that a process writes}."""

_log = logging.getLogger(__name__)


def save(
    folder: Path,
    model: nn.Module,
    optimizer: Optimizer,
    progress: Progress,
    *,
    keep: int,
    keep_best: int = 0,
    keep_steps: Collection[int] = (),
) -> Path:
    """Write a checkpoint into `folder`; every rank calls this, and writes its parts of sharded tensors.

    The checkpoint takes its name when it is complete on the disk, so an interrupted save leaves no incomplete
    one. Then older ones are removed, except the newest `keep` that are not temporary, the `keep_best` of them
    with the lowest dev loss, and those at `keep_steps`. Checkpoints of later steps are removed too: they
    belong to an abandoned continuation.

    Args:
        folder: The run's folder of checkpoints, on a file system that all ranks see.
        model: The module itself, not a wrapper such as DDP.
        optimizer: The optimiser of its parameters, whole or sharded, each over a mesh of all ranks.
        progress: The progress of training.
        keep: Number of newest checkpoints to keep, at least 1.
        keep_best: Number of checkpoints with the lowest dev loss to keep, among those with a dev loss.
        keep_steps: Steps whose checkpoints to keep.

    Returns:
        The checkpoint.

    Raises:
        RunError: On every rank, if the disk has no room or cannot be written; the older checkpoints stay.
    """
    shares = _shares({MODEL: model_tensors(model), OPTIMIZER: optimizer_tensors(model, optimizer)})
    final = folder / checkpoint_name(progress.step)
    on_first_rank(lambda: remove_leftovers(folder))
    needed = sum(on_every_rank(lambda: _num_bytes(shares)))
    with atomic_folder(final, needed=needed) as partial:
        by_rank = on_every_rank(lambda: _write_files(partial, shares))
        files = {name: record for records in by_rank for name, record in records.items()}
        on_first_rank(lambda: write_state(partial, State(progress=progress, files=files)))
    on_first_rank(lambda: remove_old(folder, progress.step, keep, keep_best, keep_steps))
    return final


def _shares(tensors: Mapping[str, Mapping[str, Tensor]]) -> dict[str, _Share]:
    """Return {file name: tensors that this process writes into it}; the first process writes both kinds."""
    rank, size = rank_and_size()
    if not any(is_sharded(tensor) for named in tensors.values() for tensor in named.values()):
        return {f"{kind}.safetensors": _share(named) for kind, named in tensors.items()} if rank == 0 else {}
    shares = {kind: _share(named) for kind, named in tensors.items()}
    return {
        f"{kind}-{rank:05d}-of-{size:05d}.safetensors": share
        for kind, share in shares.items()
        if share or rank == 0
    }


def _share(tensors: Mapping[str, Tensor]) -> _Share:
    """Return {name: part} for this process, so that all processes together write every part once."""
    local = {name: local_part(tensor) for name, tensor in tensors.items() if is_first_holder(tensor)}
    return {name: part for name, part in local.items() if not any(part[1][:1]) or len(part[0])}


def _num_bytes(shares: Mapping[str, _Share]) -> int:
    return sum(part.nbytes for share in shares.values() for part, _ in share.values())


def _write_files(folder: Path, shares: Mapping[str, _Share]) -> dict[str, FileRecord]:
    for name, share in shares.items():
        write_tensors(folder / name, share)
    return {name: record_file(folder / name) for name in shares}


def remove_old(
    folder: Path, step: int, keep: int, keep_best: int = 0, keep_steps: Collection[int] = ()
) -> None:
    """Remove the checkpoints that `save` at `step` removes, which a killed process may have left.

    Args:
        folder: The run's folder of checkpoints.
        step: The current step of training.
        keep: See `save`.
        keep_best: See `save`.
        keep_steps: See `save`.
    """
    remove_leftovers(folder)
    checkpoints = find_checkpoints(folder)
    valid = [path for path in checkpoints if step_of(path) <= step]
    due = [path for path in valid if not is_temporary(path)]
    lowest = by_dev_loss(due)[:keep_best] if keep_best else []
    remaining = {valid[-1], *due[-keep:], *lowest, *(path for path in valid if step_of(path) in keep_steps)}
    for path in checkpoints:
        if path not in remaining:
            remove(path)


def restore_newest(folder: Path, model: nn.Module, optimizer: Optimizer) -> Progress | None:
    """Load the newest unchanged checkpoint in `folder`, in place; every rank calls this.

    Newer checkpoints that have changed since they were written are skipped, with a warning.

    Returns:
        The progress at the checkpoint; None if there is no checkpoint.

    Raises:
        RunError: On every rank, if all have changed, or the newest is of another model or optimiser.
    """
    checkpoint = on_first_rank(lambda: _newest_unchanged(folder))
    return None if checkpoint is None else restore(checkpoint, model, optimizer)


def restore(checkpoint: Path, model: nn.Module, optimizer: Optimizer) -> Progress:
    """Load a checkpoint into `model` and `optimizer`, in place, without comparing checksums.

    Raises:
        RunError: If the checkpoint cannot be read, or is of another model or optimiser.
    """
    state = read_state(checkpoint)
    if state.averaged_steps:
        raise RunError(f"{checkpoint}: is an average, which cannot be continued; name it as `initial`")
    # Load the weights last: the optimiser's state is made by a step, with a learning rate of 0.
    optimizer_files = TensorFiles(files_of(checkpoint, OPTIMIZER))
    load_optimizer(optimizer_files, model, optimizer, source=checkpoint)
    model_files = TensorFiles(files_of(checkpoint, MODEL))
    load_weights(model_files, model, source=checkpoint)
    return state.progress


def load_model(checkpoint: Path, model: nn.Module) -> None:
    """Load the weights of a checkpoint, or of an average, into `model`, in place.

    Raises:
        RunError: If a file has changed since it was written, or the weights are of another model.
    """
    files = files_of(checkpoint, MODEL)
    check_files(files)
    load_weights(TensorFiles(files), model, source=checkpoint)


def _newest_unchanged(folder: Path) -> Path | None:
    """Return the newest checkpoint whose files are all unchanged; None if there is no checkpoint."""
    reasons: list[str] = []
    for checkpoint in reversed(find_checkpoints(folder)):
        try:
            check_files(files_of(checkpoint))
        except RunError as error:
            reasons.append(str(error))
            continue
        if reasons:
            _log.warning("%s; training continues from step %d", "; ".join(reasons), step_of(checkpoint))
        return checkpoint
    if reasons:
        reasons.append(f"no checkpoint is left; remove {folder} to train from the start")
        raise RunError("; ".join(reasons))
    return None


def link_checkpoint(checkpoint: Path, folder: Path) -> Path:
    """Link a checkpoint into another folder of checkpoints; every rank calls this.

    The files are hard links, which take no space, or copies if the file system has no links.

    Returns:
        The checkpoint in `folder`.

    Raises:
        RunError: On every rank, if the checkpoint is missing or has changed since it was written, or the disk
            has no room or cannot be written.
    """
    on_first_rank(lambda: check_files(files_of(checkpoint)))
    final = folder / checkpoint.name
    with atomic_folder(final, needed=0) as partial:
        on_first_rank(lambda: _link_files(checkpoint, partial))
    return final


def _link_files(source: Path, target: Path) -> None:
    for path in source.iterdir():
        try:
            os.link(path, target / path.name)
        except OSError:
            shutil.copy2(path, target / path.name)
