"""Loading the model of a trained run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mnmt_data.store import PreparedData
from mnmt_model.checkpoints import Progress, load_model, newest, read_progress
from mnmt_model.runs.losses import losses_by_task, mean_dev_loss
from mnmt_model.runs.run_data import check_vocabulary, data_folder, open_data
from mnmt_model.runs.run_record import RunRecord, read_run
from mnmt_model.transformer.build import build_model
from mnmt_model.transformer.decoding import IncrementalModel


@dataclass(frozen=True, kw_only=True)
class OpenedRun:
    """A run at one of its checkpoints."""

    record: RunRecord
    progress: Progress
    """The progress at the checkpoint."""
    folder: Path
    """The run's folder."""
    checkpoint: Path
    """The checkpoint, or an average of checkpoints."""

    @property
    def data(self) -> Path:
        """Folder of the prepared data that the run was trained on."""
        return data_folder(self.folder, self.record)

    def open_data(self) -> PreparedData:
        """Open the data that the run was trained on.

        Raises:
            DataError: If they cannot be opened.
            RunError: If they are missing, or have another vocabulary than the run.
        """
        data = open_data(self.folder)
        check_vocabulary(self.folder, data)
        return data


@dataclass(frozen=True, kw_only=True)
class LoadedRun(OpenedRun):
    """A run's model, ready to decode."""

    model: IncrementalModel
    """The model with the checkpoint's weights."""


def open_checkpoint(path: Path) -> OpenedRun:
    """Open a run at a checkpoint, without reading its weights.

    Args:
        path: The run's folder, for its newest checkpoint; or one of its checkpoints or averages.

    Raises:
        RunError: If the record or the checkpoint is missing or broken.
    """
    checkpoint = newest(path)
    folder = checkpoint.parent.parent
    return OpenedRun(
        record=read_run(folder), progress=read_progress(checkpoint), folder=folder, checkpoint=checkpoint
    )


def load_run(path: Path) -> LoadedRun:
    """Load a run's model.

    Args:
        path: The run's folder, for its newest checkpoint; or one of its checkpoints or averages.

    Raises:
        RunError: If the record or the checkpoint is missing or broken.
    """
    opened = open_checkpoint(path)
    record = opened.record
    model = build_model(record.model, record.vocab_size)
    load_model(opened.checkpoint, model)
    return LoadedRun(**vars(opened), model=IncrementalModel(model))


def dev_loss(path: Path) -> float:
    """Return the mean dev loss of a run or checkpoint over its trained tasks, in nats per token.

    Raises:
        RunError: If the record or the checkpoint is missing or broken, or the data have another vocabulary.
        DataError: If the run's prepared data are missing.
    """
    run = load_run(path)
    by_task = losses_by_task(
        run.model.translation_model, run.open_data(), "dev", batch_tokens=run.record.batch_tokens
    )
    return mean_dev_loss(dict(by_task), run.record.mixture)
