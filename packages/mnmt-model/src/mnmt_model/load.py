"""Loading a trained run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mnmt_model import checkpoints
from mnmt_model.build import build_model
from mnmt_model.decoding import IncrementalModel
from mnmt_model.errors import RunError
from mnmt_model.model_config import ModelConfig
from mnmt_model.run_record import read_run


@dataclass(frozen=True, kw_only=True)
class Record:
    """What a run's record says of it."""

    run: str
    study: str
    status: str
    role: str
    mixture: Mapping[str, float]
    step: int
    tokens: int
    flops: int


@dataclass(frozen=True, kw_only=True)
class LoadedRun:
    """A run's model, ready to decode."""

    model: IncrementalModel
    record: Record
    data: Path
    """Folder of the prepared data it was trained on."""


def load_run(path: Path) -> LoadedRun:
    """Load a run's model.

    Args:
        path: the run's folder, for its newest checkpoint; or one of its checkpoints, or an average of some.

    Raises:
        RunError: if the record or the checkpoint is missing or broken.
    """
    saved = checkpoints.newest(path)
    folder = saved.parent.parent
    run = read_run(folder)
    model = build_model(ModelConfig(**run["config"]["model"]), run["vocab_size"])
    checkpoints.load_model(saved, model)
    progress = checkpoints.read_progress(saved)
    record = Record(
        run=run["run"],
        study=run["study"],
        status=run["status"],
        role=run["role"],
        mixture=run["mixture"],
        step=progress.step,
        tokens=progress.tokens,
        flops=progress.flops,
    )
    return LoadedRun(model=IncrementalModel(model), record=record, data=folder / run["data"])
