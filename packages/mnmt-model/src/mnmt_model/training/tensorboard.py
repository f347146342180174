"""TensorBoard, with the numbers of the run record.

Tags are `train/KEY` for lines of metrics.jsonl, and `METRIC/TESTSET/TASK` for measurements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mnmt_model.errors import RunError
from mnmt_model.runs.run_record import Eval
from mnmt_model.training.balance import LOADS
from mnmt_model.training.watcher import Watcher

TENSORBOARD = "tensorboard"
"""The tracker in `trackers`, its folder in the run record, and the extra that installs it."""


class TensorBoard(Watcher):
    """Writes event files into `tensorboard/` of the run record.

    TensorBoard drops steps after `step` that an earlier process wrote.

    Args:
        folder: The run record.
        step: The step from which training continues.

    Raises:
        RunError: If the package is not installed.
    """

    def __init__(self, folder: Path, *, step: int) -> None:
        self._writer: Any = check_tensorboard()(folder / TENSORBOARD, purge_step=step + 1)

    def log(self, line: Mapping[str, Any]) -> None:
        """Write a line of metrics.jsonl, without the counts of experts by task, which are too many."""
        numbers = {key: value for key, value in line.items() if key not in (LOADS, "step")}
        for key, value in _scalars(numbers):
            self._writer.add_scalar(f"train/{key}", value, line["step"])
        self._writer.flush()

    def evaluate(self, evals: Sequence[Eval]) -> None:
        """Write measurements."""
        for each in evals:
            self._writer.add_scalar(f"{each.metric}/{each.testset}/{each.task}", each.value, each.step)
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        self._writer.close()


def check_tensorboard() -> Any:
    """Return the writer of event files.

    Raises:
        RunError: If the package is not installed.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        install = f"pip install './packages/mnmt-model[{TENSORBOARD}]'"
        raise RunError(f'trackers = ["{TENSORBOARD}"] needs `{install}`') from None
    return SummaryWriter


def _scalars(values: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the numbers of a line without null; those in lists and mappings as `KEY/INNER`."""
    for key, value in values.items():
        if isinstance(value, list):
            value = {str(index): inner for index, inner in enumerate(value)}
        if isinstance(value, Mapping):
            yield from ((f"{key}/{inner}", number) for inner, number in _scalars(value))
        elif value is not None:
            yield key, value
