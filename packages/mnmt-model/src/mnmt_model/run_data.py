"""The prepared data that a run was trained on."""

from __future__ import annotations

from collections.abc import Mapping
from os.path import relpath
from pathlib import Path
from typing import Any

from mnmt_data.prepared import Prepared, open_prepared
from mnmt_model.errors import RunError
from mnmt_model.run_record import RUN, read_run


def data_folder(run: Path, record: Mapping[str, Any]) -> Path:
    """Where they are, as the `record` of a run says, relative to the working directory."""
    return Path(relpath((run / record["data"]).resolve()))


def open_data(run: Path) -> Prepared:
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
