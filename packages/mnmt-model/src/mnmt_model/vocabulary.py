"""Whether a run's vocabulary is that of some data."""

from __future__ import annotations

from pathlib import Path

from mnmt_data.prepared import VOCABULARY, Prepared
from mnmt_data.segments import checksum
from mnmt_model.errors import RunError
from mnmt_model.run_data import data_folder
from mnmt_model.run_record import read_run

FIELD = "vocabulary"
"""Of run.json: checksum of the vocabulary's file, null where there is none. Records before 0.3 lack it."""


def check_vocabulary(run: Path, data: Prepared) -> None:
    """Check that the model of the run in `run` reads the token ids of `data` as they are meant.

    Raises:
        RunError: If it was trained with another vocabulary, or nobody knows with which.
    """
    record = read_run(run)
    if FIELD not in record:
        if record["vocab_size"] != data.vocab.size:
            raise RunError(
                f"{run}: was trained with a vocabulary of {record['vocab_size']} pieces, but that of "
                f"{data.folder} has {data.vocab.size}; prepare the data as they were then"
            )
    elif record[FIELD] is None:
        raise RunError(f"{run}: has no vocabulary; import it once more, with its `spiece.model`")
    elif record[FIELD] != checksum(data.folder / VOCABULARY):
        raise RunError(
            f"{run}: was trained with another vocabulary than that of {data.folder}; "
            f"prepare the data {_as_then(data_folder(run, record) / VOCABULARY, record[FIELD])}"
        )


def _as_then(file: Path, known: str) -> str:
    """With what to prepare data for the run: its vocabulary's file, if that is still there."""
    if file.is_file() and checksum(file) == known:
        return f'with `path = "{file}"` in [data.vocab]'
    return "as they were then"
