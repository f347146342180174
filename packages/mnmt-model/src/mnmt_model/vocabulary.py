"""Whether a run's vocabulary is that of other data."""

from __future__ import annotations

from pathlib import Path

from mnmt_data.prepared import VOCABULARY, Prepared
from mnmt_model.errors import RunError
from mnmt_model.run_record import read_run


def check_vocabulary(run: Path, data: Prepared) -> None:
    """Check that the model of the run in `run` reads the token ids of `data` as they are meant.

    Raises:
        RunError: if it was trained with another vocabulary, or that is no longer there.
    """
    trained_with = run / read_run(run)["data"] / VOCABULARY
    if not trained_with.is_file():
        raise RunError(f"{trained_with}: is missing, so that {run} cannot be used with other data")
    if trained_with.read_bytes() != (data.folder / VOCABULARY).read_bytes():
        raise RunError(
            f"{run}: was trained with another vocabulary than that of {data.folder}; "
            f'prepare the data with `path = "{trained_with}"` in [data.vocab]'
        )
