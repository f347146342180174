"""The prepared data of a run, and a check of the vocabulary of other data."""

from __future__ import annotations

from collections.abc import Mapping
from os.path import relpath
from pathlib import Path

from mnmt_data.prepare import recorded_changes
from mnmt_data.store import VOCABULARY, PreparedData, checksum, open_prepared
from mnmt_model.errors import RunError
from mnmt_model.runs.run_record import RUN, RunRecord, read_run

PREPARE_THOSE = "prepare the old ones again, with another --out for the new ones"
"""What to do if a run's data were prepared with other settings since."""


def data_folder(run: Path, record: RunRecord) -> Path:
    """Return the folder of a run's data, relative to the working directory."""
    return Path(relpath((run / record.data).resolve()))


def open_data(run: Path) -> PreparedData:
    """Open the prepared data of the run in the folder `run`.

    Raises:
        RunError: If its record cannot be read, or the data are missing or were prepared with other settings
            since, other test sets left aside.
        DataError: If the data cannot be read.
    """
    record = read_run(run)
    folder = data_folder(run, record)
    if not folder.is_dir():
        raise RunError(
            f"{run / RUN}: its data should be at {record.data} from there, and are not; keep the run "
            "where they are, or change `data`"
        )
    data = open_prepared(folder)
    if record.data_fingerprint != data.fingerprint and record.data_config is not None:
        changes = recorded_changes(record.data_config, data.description.config)
        if change := next((change for change in changes if not change.is_of_a_test_set), None):
            raise RunError(f"{run / RUN}: was trained on other data than {folder}: {change}; {PREPARE_THOSE}")
    return data


def mean_lengths(mixture: Mapping[str, float], data: PreparedData) -> tuple[float, float]:
    """Return the mean source and target tokens of the mixture's training pairs."""
    src, tgt = 0.0, 0.0
    for task, weight in mixture.items():
        counts = data.train_counts[task]
        src += weight * counts.src_tokens / counts.pairs
        tgt += weight * counts.tgt_tokens / counts.pairs
    return src, tgt


def check_vocabulary(run: Path, data: PreparedData) -> None:
    """Check that `data` have the vocabulary of the run in the folder `run`.

    Raises:
        RunError: If they have another vocabulary, or the record has none.
    """
    record = read_run(run)
    if "vocabulary" in record.absent:
        _check_size(run, record, data)
    elif record.vocabulary is None:
        raise RunError(f"{run}: has no vocabulary; import it once more, with its `spiece.model`")
    elif record.vocabulary != checksum(data.folder / VOCABULARY):
        raise RunError(
            f"{run}: was trained with another vocabulary than that of {data.folder}; "
            f"prepare the data {_remedy(data_folder(run, record) / VOCABULARY, record.vocabulary)}"
        )


def _check_size(run: Path, record: RunRecord, data: PreparedData) -> None:
    """Check the number of pieces, the only field about the vocabulary in records before 0.3."""
    if record.vocab_size != data.vocab.size:
        raise RunError(
            f"{run}: was trained with a vocabulary of {record.vocab_size} pieces, but that of "
            f"{data.folder} has {data.vocab.size}; prepare the data as they were then"
        )


def _remedy(file: Path, sha256: str) -> str:
    """Return how to prepare data for the run: with its vocabulary file, if it still exists."""
    if file.is_file() and checksum(file) == sha256:
        return f'with `path = "{file}"` in [data.vocab]'
    return "as they were then"
