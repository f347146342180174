"""A trained run, its data and its model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mnmt_data.store import PreparedData
from mnmt_eval.runs.training_lengths import drawn_weights, longest_source
from mnmt_model import LoadedRun, load_run, write_expert_loads
from mnmt_model.runs import mixture_names
from mnmt_model.runs.load import OpenedRun, open_checkpoint


@dataclass(frozen=True, kw_only=True)
class TrainedRun:
    """A run at a checkpoint, with the data that it was trained on."""

    folder: Path
    opened: OpenedRun
    data: PreparedData

    @cached_property
    def loaded(self) -> LoadedRun:
        """The run with its model, whose weights are read when it is first used.

        Raises:
            RunError: If they cannot be read.
        """
        return load_run(self.opened.checkpoint)

    @cached_property
    def max_source(self) -> int:
        """The tokens of a source from which on it is too long: longer than nearly all in training."""
        return longest_source(self.data, drawn_weights(self.opened.record, self.opened.progress.step))


def open_run(path: Path) -> TrainedRun:
    """Open a run and its data.

    Args:
        path: The run's folder, for its newest checkpoint; or a checkpoint, or an average of checkpoints.

    Raises:
        RunError: If the run cannot be opened, or its data now have another vocabulary.
        DataError: If its data cannot be opened.
    """
    opened = open_checkpoint(path)
    return TrainedRun(folder=path, opened=opened, data=opened.open_data())


def count_experts(run: TrainedRun, testset: str, task: str, *, device: str = "cpu") -> None:
    """Write which experts the tokens of a test set choose, into the run's folder, if its model has any.

    Args:
        run: The run; its model is loaded if the file is not there already.
        testset: The test set.
        task: The task.
        device: The device that computes.

    Raises:
        RunError: If the run cannot be loaded.
        DataError: If its data cannot be read.
    """
    if mixture_names(run.opened.record.model):
        write_expert_loads(
            run.opened,
            run.data,
            testset=testset,
            task=task,
            model=lambda: run.loaded.model.translation_model.to(device),
        )
