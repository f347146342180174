"""Opening trained runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mnmt_data.store import PreparedData
from mnmt_model import LoadedRun, load_run
from mnmt_model.runs import read_run


@dataclass(frozen=True, kw_only=True)
class TrainedRun:
    """A run's newest model with the data it was trained on."""

    folder: Path
    loaded: LoadedRun
    data: PreparedData

    @property
    def max_length(self) -> int:
        """Tokens of the longest sentences it was trained on."""
        return self.data.max_length


def run_status(folder: Path) -> str:
    """`running`, `finished` or `failed`.

    Raises:
        RunError: If there is no readable run record.
    """
    return read_run(folder).status


def open_run(path: Path) -> TrainedRun:
    """Load a run and open its data.

    Args:
        path: The run's folder, for its newest checkpoint; or a checkpoint, or an average of some.

    Raises:
        RunError: If the run cannot be loaded, or its data have another vocabulary by now.
        DataError: If its data cannot be opened.
    """
    loaded = load_run(path)
    return TrainedRun(folder=path, loaded=loaded, data=loaded.open_data())
