"""Loading a trained run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mnmt_data.store import PreparedData
from mnmt_model.checkpoints import load_model, newest, read_progress
from mnmt_model.runs.evaluate import losses, mean_dev_loss
from mnmt_model.runs.run_data import check_vocabulary, data_folder, open_data
from mnmt_model.runs.run_record import read_run
from mnmt_model.transformer.build import build_model
from mnmt_model.transformer.decoding.incremental_model import IncrementalModel
from mnmt_model.transformer.model_config import ModelConfig


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
    folder: Path
    """The run's."""
    checkpoint: Path
    """Whose weights the model has."""

    def open_data(self) -> PreparedData:
        """Open the data it was trained on.

        Raises:
            DataError: If they cannot be opened.
            RunError: If they are gone, or have another vocabulary than the one it was trained with.
        """
        data = open_data(self.folder)
        check_vocabulary(self.folder, data)
        return data


def load_run(path: Path) -> LoadedRun:
    """Load a run's model.

    Args:
        path: The run's folder, for its newest checkpoint; or one of its checkpoints, or an average of some.

    Raises:
        RunError: If the record or the checkpoint is missing or broken.
    """
    saved = newest(path)
    folder = saved.parent.parent
    run = read_run(folder)
    model = build_model(ModelConfig(**run["config"]["model"]), run["vocab_size"])
    load_model(saved, model)
    progress = read_progress(saved)
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
    return LoadedRun(
        model=IncrementalModel(model),
        record=record,
        data=data_folder(folder, run),
        folder=folder,
        checkpoint=saved,
    )


def dev_loss(path: Path) -> float:
    """Mean dev loss of the model of a run or checkpoint over the tasks it was trained on, in nats per token.

    Raises:
        RunError: If the record or the checkpoint is missing or broken, or the data have another vocabulary.
        DataError: If the run's prepared data are gone.
    """
    loaded = load_run(path)
    batch_tokens = read_run(loaded.folder)["config"]["train"]["batch_tokens"]
    found = losses(loaded.model.model, loaded.open_data(), "dev", batch_tokens=batch_tokens)
    return mean_dev_loss(dict(found), loaded.record.mixture)
