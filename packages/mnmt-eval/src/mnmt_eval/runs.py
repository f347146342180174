"""Opening trained runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mnmt_data.prepared import Prepared, open_prepared
from mnmt_eval.errors import EvalError
from mnmt_model import LoadedRun, load_run
from mnmt_model.run_record import read_run


@dataclass(frozen=True, kw_only=True)
class TrainedRun:
    """A run's newest model with the data it was trained on."""

    folder: Path
    loaded: LoadedRun
    data: Prepared


def run_status(folder: Path) -> str:
    """`running`, `finished` or `failed`.

    Raises:
        RunError: if there is no readable run record.
    """
    return str(read_run(folder)["status"])


def open_run(folder: Path) -> TrainedRun:
    """Load a run and open its data.

    Raises:
        RunError: if the run cannot be loaded.
        DataError: if its data cannot be opened.
        EvalError: if the vocabulary is not the one it was trained with.
    """
    loaded = load_run(folder)
    data = open_prepared(loaded.data)
    trained_size = loaded.model.model.vocab_size
    if data.vocab.size != trained_size:
        raise EvalError(
            f"{data.folder}: has a vocabulary of {data.vocab.size} pieces, but {folder} was trained with "
            f"{trained_size}; prepare the data as they were then, or train again."
        )
    return TrainedRun(folder=folder, loaded=loaded, data=data)
