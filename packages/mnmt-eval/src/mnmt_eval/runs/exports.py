"""Exports of a run's checkpoints for CTranslate2, made when they are first needed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mnmt_data import DataError
from mnmt_data.store import checksum, file_lock, is_locked, read_json, write_json
from mnmt_eval.errors import EvalError
from mnmt_eval.translate.engine_config import require_packages
from mnmt_model import export_run
from mnmt_model.checkpoints import weights_checksum
from mnmt_model.export.conversion import CTRANSLATE2_FOLDER
from mnmt_model.export.layouts import check_convertible
from mnmt_model.runs.load import OpenedRun

EXPORTS = "exports"
"""Folder in a run that holds a folder for each checkpoint that was exported."""

RECORD = "export.json"
"""What an export was made of and with; it is written last."""

_WAIT_SECONDS = 3600.0
"""The longest time that another process is awaited which exports the same checkpoint."""

OnExport = Callable[[str], object]
"""A function that is called with a message before the work that takes long."""


def print_nothing(message: str) -> None:
    """Ignore a message."""


def find_export(run: OpenedRun, *, on_export: OnExport = print_nothing) -> Path:
    """Return the folder of CTranslate2's files of a checkpoint; export and certify it if need be.

    It lies in `RUN/exports/CHECKPOINT-WEIGHTS-VERSION`, the version of CTranslate2, so that environments with
    different ones do not remove each other's. An export counts if its files are as they were when it was
    certified, of these weights and for this version. Of several processes one exports, and the others wait
    for it.

    Args:
        run: The run at the checkpoint.
        on_export: A function that is called with a message before the work that takes long.

    Raises:
        RunError: If the model is no T5 1.1, or the exported one does not agree with it.
        EvalError: If a package is missing.
        DataError: If the run's data are gone.
    """
    check_convertible(run.record.model)
    weights = weights_checksum(run.checkpoint)
    folder = run.folder / EXPORTS / f"{run.checkpoint.name}-{weights[:16]}-{version('ctranslate2')}"
    if not _is_valid(folder, weights):
        require_packages("transformers", "google.protobuf")
        folder.parent.mkdir(exist_ok=True)
        lock = folder.with_name(f".{folder.name}.lock")
        if is_locked(lock):
            on_export(f"{folder}: another process exports this checkpoint; waiting for it")
        with file_lock(lock, name=folder, error=EvalError, seconds=_WAIT_SECONDS):
            if not _is_valid(folder, weights):
                on_export(f"{folder}: exporting the checkpoint for CTranslate2, once")
                _export(run, folder, weights)
    return folder / CTRANSLATE2_FOLDER


def _export(run: OpenedRun, folder: Path, weights: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    export_run(run.folder, folder, checkpoint=run.checkpoint)
    write_json(folder / RECORD, _record(folder, weights))


def _is_valid(folder: Path, weights: str) -> bool:
    """Return whether a complete export of these weights is there, unchanged, and agrees with the run."""
    try:
        agrees = read_json(folder / "certificate.json")["agrees"]
        return agrees is True and read_json(folder / RECORD) == _record(folder, weights)
    except (OSError, DataError, KeyError, TypeError):
        return False


def _record(folder: Path, weights: str) -> dict[str, Any]:
    files = sorted((folder / CTRANSLATE2_FOLDER).iterdir())
    return {
        "weights": weights,
        "ctranslate2": version("ctranslate2"),
        "files": {path.name: checksum(path) for path in files},
    }
