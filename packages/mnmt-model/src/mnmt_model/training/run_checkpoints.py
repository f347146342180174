"""The checkpoints of a run in training."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from torch.optim import Optimizer

from mnmt_model.checkpoints import CHECKPOINTS, Progress, remove_old, restore_newest, save
from mnmt_model.distributed.world import on_first_rank
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.runs.run_record import drop_lines_after
from mnmt_model.transformer.translation_model import TranslationModel


class RunCheckpoints:
    """The checkpoints of a run in training; every process calls each method.

    Args:
        run: The run.
        folder: The run's folder.
        model: The model after `make_trainable`.
        optimizer: Its optimiser.
    """

    def __init__(self, run: RunConfig, folder: Path, model: TranslationModel, optimizer: Optimizer) -> None:
        self.run, self.config, self.folder = run, run.train, folder
        self.model, self.optimizer = model, optimizer
        self._started = self._saved_at = time.monotonic()
        self._saved_step, self._seconds_before = 0, 0.0

    def restore(self) -> Progress | None:
        """Load the newest checkpoint and return its progress; None if the run has no checkpoint.

        Lines of the record after its step are dropped, since training will write them again.
        """
        folder = self.folder / CHECKPOINTS
        progress = restore_newest(folder, self.model, self.optimizer)
        step = 0 if progress is None else progress.step
        if progress is not None:
            on_first_rank(lambda: remove_old(folder, step, **self._retention))
            # A branch does not count the time of its trunk.
            if self.run.branch is None or step != self.run.branch.step:
                self._seconds_before = float(progress.extras.get("seconds", 0.0))
        on_first_rank(lambda: drop_lines_after(self.folder, step))
        self._saved_step, self._saved_at = step, time.monotonic()
        return progress

    @property
    def seconds(self) -> float:
        """Seconds of training so far, without interruptions and lost work."""
        return self._seconds_before + time.monotonic() - self._started

    @property
    def is_late(self) -> bool:
        """Whether the last checkpoint is older than `checkpoint_minutes`."""
        minutes = self.config.checkpoint_minutes
        return minutes > 0 and time.monotonic() - self._saved_at > 60 * minutes

    def has(self, step: int) -> bool:
        """Return whether the last checkpoint is of this step; if so, reset its age."""
        if self._saved_step == step:
            self._saved_at = time.monotonic()
        return self._saved_step == step

    def save(self, progress: Progress) -> None:
        """Save a checkpoint, and remove old ones."""
        save(self.folder / CHECKPOINTS, self.model, self.optimizer, progress, **self._retention)
        self._saved_step, self._saved_at = progress.step, time.monotonic()

    @property
    def _retention(self) -> dict[str, Any]:
        """Options of `save` about the checkpoints to keep."""
        return {
            "keep": self.config.keep_checkpoints,
            "keep_best": self.config.keep_best,
            "keep_steps": self.config.departures,
        }
