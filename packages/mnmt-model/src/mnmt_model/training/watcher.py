"""Watchers of a run: the interface, the heartbeat, and TensorBoard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mnmt_data.jobs.claim import HeartbeatWriter
from mnmt_model.errors import RunError
from mnmt_model.runs.run_record import Eval
from mnmt_model.training.balance import LOADS

TENSORBOARD = "tensorboard"


class Watcher:
    """Handles events of training; a subclass overrides those that it needs."""

    def announce(self, phase: str) -> None:
        """Handle a phase before the first step that may take a minute, such as compiling."""

    def step(self, step: int) -> None:
        """Handle the end of `step`, after its evaluations and checkpoint."""

    def log(self, line: Mapping[str, Any]) -> None:
        """Handle a new line of metrics.jsonl."""

    def evaluate(self, evals: Sequence[Eval]) -> None:
        """Handle new measurements in evals.jsonl."""

    def close(self) -> None:
        """Handle the end of training, also after an error."""


class HeartbeatWatcher(Watcher):
    """Updates step and loss of a run's heartbeat.

    Args:
        heartbeat: The heartbeat, which continues until run.json records the end.
    """

    def __init__(self, heartbeat: HeartbeatWriter) -> None:
        self.heartbeat = heartbeat

    def announce(self, phase: str) -> None:
        """Show a phase until the first step is done."""
        self.heartbeat.announce(phase)

    def step(self, step: int) -> None:
        """Count `step` as done."""
        self.heartbeat.update(step)

    def log(self, line: Mapping[str, Any]) -> None:
        """Update the loss from a line of metrics.jsonl."""
        self.heartbeat.loss = line["loss"]


class TensorBoard(Watcher):
    """Writes events for TensorBoard, beside the run record.

    Tags are `train/KEY` for every line of metrics.jsonl, and `METRIC/TESTSET/TASK` for every measurement.
    Counts of experts by task are too many, and left out.

    Args:
        folder: The run record; events go to `tensorboard/` in it.
        step: The step from which training continues. TensorBoard drops later steps of an earlier process.

    Raises:
        RunError: If the package tensorboard is not installed.
    """

    def __init__(self, folder: Path, *, step: int) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise RunError(
                "tensorboard = true needs `pip install './packages/mnmt-model[tensorboard]'`"
            ) from None
        self._writer: Any = SummaryWriter(folder / TENSORBOARD, purge_step=step + 1)

    def log(self, line: Mapping[str, Any]) -> None:
        """Write a line of metrics.jsonl."""
        for key, value in _scalars({key: value for key, value in line.items() if key != LOADS}):
            if key != "step":
                self._writer.add_scalar(f"train/{key}", value, line["step"])
        self._writer.flush()

    def evaluate(self, evals: Sequence[Eval]) -> None:
        """Write measurements."""
        for measurement in evals:
            tag = f"{measurement.metric}/{measurement.testset}/{measurement.task}"
            self._writer.add_scalar(tag, measurement.value, measurement.step)
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        self._writer.close()


def _scalars(values: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the numbers of a line without null; those in lists and mappings as `KEY/INNER`."""
    for key, value in values.items():
        if isinstance(value, list):
            value = {str(index): inner for index, inner in enumerate(value)}
        if isinstance(value, Mapping):
            yield from ((f"{key}/{inner}", number) for inner, number in _scalars(value))
        elif value is not None:
            yield key, value
