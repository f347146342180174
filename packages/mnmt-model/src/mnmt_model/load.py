"""Loading a trained run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mnmt_model import checkpoint
from mnmt_model.decoding import IncrementalModel
from mnmt_model.errors import RunError
from mnmt_model.run_record import read_run
from mnmt_model.shape import Shape
from mnmt_model.transformer import EncoderDecoder


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
    """A run's newest model, ready to decode."""

    model: IncrementalModel
    record: Record
    data: Path
    """Folder of the prepared data it was trained on."""


def load_run(folder: Path) -> LoadedRun:
    """Load the newest checkpoint of the run in `folder`.

    Raises:
        RunError: if the record or the checkpoint is missing or broken.
    """
    run = read_run(folder)
    saved = checkpoint.checkpoints(folder / checkpoint.CHECKPOINTS)
    if not saved:
        raise RunError(f"{folder / checkpoint.CHECKPOINTS}: no checkpoint yet; train the run first")
    model = EncoderDecoder(Shape(**run["config"]["model"]), run["vocab_size"])
    checkpoint.load_model(saved[-1], model)
    progress = checkpoint.read_progress(saved[-1])
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
