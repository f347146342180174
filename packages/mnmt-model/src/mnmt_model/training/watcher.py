"""Observers of a run: the interface, and TensorBoard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mnmt_model.errors import RunError
from mnmt_model.runs.run_record import Eval


class Watcher:
    """Is told how a run goes; does nothing unless a subclass does."""

    def step(self, step: int) -> None:
        """`step` is done, and whatever was due at it."""

    def log(self, line: Mapping[str, Any]) -> None:
        """A line of metrics.jsonl was written."""

    def evaluate(self, evals: Sequence[Eval]) -> None:
        """Measurements were written to evals.jsonl."""

    def close(self) -> None:
        """The run has ended, or was interrupted."""


TENSORBOARD = "tensorboard"


class TensorBoard(Watcher):
    """Writes `train/KEY` of every line of metrics.jsonl and `METRIC/TESTSET/TASK` of every measurement.

    Args:
        folder: The run record; events go to `tensorboard/` in it.
        step: That training goes on from; TensorBoard forgets what an earlier process wrote of later steps.

    Raises:
        RunError: If the package tensorboard is not installed.
    """

    def __init__(self, folder: Path, *, step: int) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise RunError("tensorboard = true needs `pip install mnmt-model[tensorboard]`") from None
        self._writer: Any = SummaryWriter(folder / TENSORBOARD, purge_step=step + 1)

    def log(self, line: Mapping[str, Any]) -> None:
        """Write a line of metrics.jsonl."""
        for key, value in _scalars(line):
            if key != "step":
                self._writer.add_scalar(f"train/{key}", value, line["step"])
        self._writer.flush()

    def evaluate(self, evals: Sequence[Eval]) -> None:
        """Write measurements."""
        for measured in evals:
            tag = f"{measured.metric}/{measured.testset}/{measured.task}"
            self._writer.add_scalar(tag, measured.value, measured.step)
        self._writer.flush()

    def close(self) -> None:
        """Finish the file."""
        self._writer.close()


def _scalars(values: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The numbers of a line, those inside lists and mappings as `KEY/INNER`; null is left out."""
    for key, value in values.items():
        if isinstance(value, list):
            value = {str(index): inner for index, inner in enumerate(value)}
        if isinstance(value, Mapping):
            yield from ((f"{key}/{inner}", number) for inner, number in _scalars(value))
        elif value is not None:
            yield key, value
