"""Checkpoints: folders of safetensors that appear whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from mnmt_data.prepared import VOCABULARY, Prepared
from mnmt_model import jsonl
from mnmt_model.errors import RunError
from mnmt_model.run_record import read_run

CHECKPOINTS = "checkpoints"
MODEL = "model.safetensors"
OPTIMIZER = "optimizer.safetensors"
STATE = "state.json"
PARTIAL = ".partial"


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where a run stands: what, beside the tensors, is needed to go on."""

    step: int
    tokens: int
    """Source and target tokens seen, padding left out."""
    flops: int
    stream: dict[str, Any]
    """State of the batch stream."""


def save(
    folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, progress: Progress, *, keep: int
) -> None:
    """Write a checkpoint into `folder` and remove all but the newest `keep`.

    It is renamed when complete, so an interrupted save leaves no half checkpoint.
    """
    final = folder / f"step-{progress.step:08d}"
    partial = final.with_name(final.name + PARTIAL)
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    save_file(model.state_dict(), partial / MODEL)
    save_file(_flatten(optimizer), partial / OPTIMIZER)
    jsonl.write_json(partial / STATE, vars(progress))
    shutil.rmtree(final, ignore_errors=True)
    partial.rename(final)
    for old in checkpoints(folder)[:-keep]:
        shutil.rmtree(old)


def checkpoints(folder: Path) -> list[Path]:
    """Complete checkpoints in `folder`, oldest first."""
    return sorted(path for path in folder.glob("step-*") if not path.name.endswith(PARTIAL))


def newest(path: Path) -> Path:
    """The newest checkpoint of the run in `path`, or `path` itself if it is a checkpoint.

    Raises:
        RunError: if it is neither.
    """
    saved = [path] if (path / MODEL).is_file() else checkpoints(path / CHECKPOINTS)
    if not saved:
        raise RunError(
            f"{path}: holds no checkpoint; name the folder of a trained run, or a checkpoint in it"
        )
    return saved[-1]


def check_vocabulary(run: Path, data: Prepared) -> None:
    """Check that the model of the run in `run` reads the token ids of `data` as they are meant.

    Raises:
        RunError: if it was trained with another vocabulary, or that is no longer there.
    """
    trained_with = run / read_run(run)["data"] / VOCABULARY
    if not trained_with.is_file():
        raise RunError(f"{trained_with}: is missing, so that {run} cannot be used with other data")
    if trained_with.read_bytes() != (data.folder / VOCABULARY).read_bytes():
        raise RunError(
            f"{run}: was trained with another vocabulary than that of {data.folder}; "
            f'prepare the data with `path = "{trained_with}"` in [data.vocab]'
        )


def restore(checkpoint: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> Progress:
    """Load a checkpoint into `model` and `optimizer`, in place."""
    load_model(checkpoint, model)
    _unflatten(_load(checkpoint / OPTIMIZER), optimizer)
    return read_progress(checkpoint)


def load_model(checkpoint: Path, model: nn.Module) -> None:
    """Load the weights of a checkpoint into `model`, in place.

    Raises:
        RunError: if the file is broken or of another shape.
    """
    try:
        model.load_state_dict(_load(checkpoint / MODEL))
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise RunError(f"{checkpoint / MODEL}: does not fit the model of run.json ({reason})") from None


def read_progress(checkpoint: Path) -> Progress:
    """Where the run stood at `checkpoint`."""
    return Progress(**jsonl.read_json(checkpoint / STATE))


def _load(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise RunError(f"{path}: cannot be read ({error}); remove this checkpoint") from None


def _flatten(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    states: Mapping[int, Mapping[str, Tensor]] = optimizer.state_dict()["state"]
    return {f"{index}.{name}": value for index, state in states.items() for name, value in state.items()}


def _unflatten(tensors: Mapping[str, Tensor], optimizer: torch.optim.Optimizer) -> None:
    states: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        index, name = key.split(".", 1)
        states.setdefault(int(index), {})[name] = value
    optimizer.load_state_dict({"state": states, "param_groups": optimizer.state_dict()["param_groups"]})
