"""The prepared data of a run, and whether other data have its vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from os.path import relpath
from pathlib import Path
from typing import Any

from mnmt_data.store import VOCABULARY, PreparedData, checksum, open_prepared
from mnmt_model.errors import RunError
from mnmt_model.runs.run_record import RUN, read_run


def data_folder(run: Path, record: Mapping[str, Any]) -> Path:
    """Where they are, as the `record` of a run says, relative to the working directory."""
    return Path(relpath((run / record["data"]).resolve()))


def open_data(run: Path) -> PreparedData:
    """Open the prepared data of a run.

    Raises:
        RunError: If its record cannot be read, or they are not where it says.
        DataError: If they cannot be read.
    """
    record = read_run(run)
    folder = data_folder(run, record)
    if not folder.is_dir():
        raise RunError(
            f"{run / RUN}: its data should be at {record['data']} from there, and are not; keep the run "
            "where they are, or change `data`"
        )
    return open_prepared(folder)


FIELD = "vocabulary"
"""Of run.json: checksum of the vocabulary's file, null where there is none. Records before 0.3 lack it."""


def check_vocabulary(run: Path, data: PreparedData) -> None:
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
