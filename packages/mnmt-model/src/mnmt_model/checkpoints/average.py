"""Means of the weights of a run's checkpoints (Vaswani et al. 2017, §6.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from mnmt_model.checkpoints.atomic_folder import atomic_folder
from mnmt_model.checkpoints.checkpoint_folders import CHECKPOINTS, by_dev_loss, find_checkpoints, is_temporary
from mnmt_model.checkpoints.named_tensors import is_bias_of_gate
from mnmt_model.checkpoints.state import (
    MODEL,
    State,
    check_files,
    files_of,
    read_progress,
    record_file,
    write_state,
)
from mnmt_model.checkpoints.tensor_files import TensorFiles, write_tensors
from mnmt_model.errors import RunError

AVERAGES = "averages"


def select_checkpoints(run: Path, *, last: int | None = None, best: int | None = None) -> list[Path]:
    """Select checkpoints of a run to average.

    Args:
        run: The run's folder.
        last: Number of checkpoints to select: the newest that are not temporary, returned oldest first.
        best: Instead of `last`, the number of checkpoints with the lowest dev loss, returned best first.

    Raises:
        RunError: If the run has fewer checkpoints.
    """
    if (last is None) == (best is None):
        raise ValueError("One of `last` and `best` must be given.")
    saved = [path for path in find_checkpoints(run / CHECKPOINTS) if not is_temporary(path)]
    if last is not None:
        _require(run, "checkpoints", len(saved), "last", last, "keep_checkpoints")
        return saved[-last:]
    assert best is not None
    ranked = by_dev_loss(saved)
    _require(run, "checkpoints with a dev loss", len(ranked), "best", best, "keep_best")
    return ranked[:best]


def average_checkpoints(checkpoints: Sequence[Path], out: Path) -> None:
    """Write the mean of the weights of checkpoints of one run, as a checkpoint to load models from.

    mean(θ_1, …, θ_n) = (θ_1 + … + θ_n) / n, in float64, rounded to the type of the weights. The progress is
    that of the newest checkpoint. Missing biases of gates, which older versions did not write, are 0. Memory:
    one model and one tensor.

    Args:
        checkpoints: At least one; not averages.
        out: Folder to write, such as RUN/averages/last-10; replaced if it exists.

    Raises:
        RunError: If a checkpoint has changed, their shapes differ, or `out` cannot be written.
    """
    if not checkpoints:
        raise ValueError("`checkpoints` must name at least one checkpoint, but is empty.")
    progress = [read_progress(path) for path in checkpoints]
    mean = _mean(checkpoints)
    path = f"{MODEL}.safetensors"
    with atomic_folder(out, needed=sum(tensor.nbytes for tensor in mean.values())) as folder:
        write_tensors(folder / path, {name: (tensor, ()) for name, tensor in mean.items()})
        state = State(
            progress=replace(max(progress, key=lambda each: each.step), dev_loss=None),
            files={path: record_file(folder / path)},
            averaged_steps=[each.step for each in progress],
        )
        write_state(folder, state)


def _mean(checkpoints: Sequence[Path]) -> dict[str, Tensor]:
    models = [_open(path) for path in checkpoints]
    for path, files in zip(checkpoints, models, strict=True):
        if _old_shapes(files) != _old_shapes(models[0]):
            raise RunError(f"{path}: is of another model than {checkpoints[0]}")
    names = dict.fromkeys(name for files in models for name in files.shapes)
    return {name: _mean_tensor(models, name) for name in names}


def _old_shapes(files: TensorFiles) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the tensors that all versions write."""
    return {name: shape for name, shape in files.shapes.items() if not is_bias_of_gate(name)}


def _open(checkpoint: Path) -> TensorFiles:
    files = files_of(checkpoint, MODEL)
    check_files(files)
    return TensorFiles(files)


def _mean_tensor(models: Sequence[TensorFiles], name: str) -> Tensor:
    first, *rest = (files for files in models if name in files.shapes)
    tensor = first.read(name)
    total = tensor.to(torch.float64, copy=True)
    for files in rest:
        total += files.read(name)
    return total.div_(len(models)).to(tensor.dtype)


def _require(run: Path, what: str, available: int, option: str, requested: int, setting: str) -> None:
    if requested < 1:
        raise ValueError(f"`{option}` must be at least 1, but is {requested}.")
    if available < requested:
        raise RunError(
            f"{run}: has {available} {what}, but `{option}` is {requested}; keep more with `{setting}`"
        )
