"""Trained runs with their data, and the devices to run them on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from mnmt_data.store import PreparedData
from mnmt_eval.errors import EvalError
from mnmt_model import LoadedRun, load_run
from mnmt_model.runs import read_run


@dataclass(frozen=True, kw_only=True)
class TrainedRun:
    """A run's model with the data that it was trained on."""

    folder: Path
    """The run's folder."""
    loaded: LoadedRun
    """The model and its record."""
    data: PreparedData
    """The data."""

    @property
    def max_length(self) -> int:
        """The number of tokens of the longest sentences that it was trained on."""
        return self.data.max_length


def open_run(path: Path) -> TrainedRun:
    """Load a run and open its data.

    Args:
        path: The run's folder, for its newest checkpoint; or a checkpoint, or an average of checkpoints.

    Raises:
        RunError: If the run cannot be loaded, or its data now have another vocabulary.
        DataError: If its data cannot be opened.
    """
    loaded = load_run(path)
    return TrainedRun(folder=path, loaded=loaded, data=loaded.open_data())


def run_status(folder: Path) -> str:
    """Return `running`, `finished` or `failed`.

    Raises:
        RunError: If there is no readable run record.
    """
    return read_run(folder).status


def find_devices(name: str | None) -> tuple[str, ...]:
    """Return the named devices, or by default every GPU, or the CPU if there is none.

    This does not initialise CUDA, which a process must not have done before others are forked from it.

    Raises:
        EvalError: If there is no such device.
    """
    count = torch.cuda.device_count()
    gpus = tuple(f"cuda:{i}" for i in range(count))
    choices: dict[str | None, tuple[str, ...]] = {None: gpus or ("cpu",), "cpu": ("cpu",)}
    choices |= {"cuda": gpus} if gpus else {}
    choices |= {device: (device,) for device in gpus}
    if name not in choices:
        raise EvalError(f"`device` must be one of {', '.join(filter(None, choices))}, but is {name!r}.")
    return choices[name]
