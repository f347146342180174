"""The engine that translates with a run, and the export for CTranslate2, made when it is first needed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mnmt_data import DataError
from mnmt_data.errors import UserError
from mnmt_data.store import checksum, file_lock, is_locked, read_json, write_json
from mnmt_eval.errors import EvalError
from mnmt_eval.runs.trained_run import TrainedRun
from mnmt_eval.search.config import SearchConfig
from mnmt_eval.translate.ctranslate2_engine import CTranslate2Engine, check_compute
from mnmt_eval.translate.engine import Engine, TorchEngine
from mnmt_eval.translate.engine_config import TORCH, EngineConfig, missing_package, obstacle
from mnmt_model import RunError, export_run
from mnmt_model.checkpoints import weights_checksum
from mnmt_model.export.conversion import CTRANSLATE2_FOLDER, FAILED
from mnmt_model.export.layouts import check_convertible
from mnmt_model.runs.load import OpenedRun

EXPORTS = "exports"
"""Folder in a run that holds a folder for each checkpoint that was exported."""

RECORD = "export.json"
"""The weights, versions and files of an export; it is written last."""

_CERTIFICATE = "certificate.json"
_TRANSFORMERS_WEIGHTS = "model.safetensors"

_WAIT_SECONDS = 3600.0
"""The longest wait for another process that exports the same checkpoint."""

OnExport = Callable[[str], object]
"""A function that is called with a message before work that takes long, and with the reason if it fails."""


def print_nothing(message: str) -> None:
    """Ignore a message."""


def choose_engine(
    run: OpenedRun,
    search: SearchConfig,
    engine: EngineConfig,
    *,
    device: str = "cpu",
    on_export: OnExport = print_nothing,
) -> EngineConfig:
    """Return the engine that searches, and export the run if that is CTranslate2.

    `auto` is CTranslate2 in float32 where it can do the search with the model on the device, its packages are
    installed, and the export agrees with the run. Otherwise it is torch.

    Args:
        run: The run at the checkpoint.
        search: The options of the search.
        engine: The requested engine.
        device: The device that it will search on.
        on_export: A function that is called before the run is exported, and if the export fails.

    Raises:
        RunError: If CTranslate2 is requested, and the run cannot be exported.
        EvalError: If the requested engine cannot search so.
        DataError: If the run's data are gone.
    """
    if engine.name == "torch":
        return engine
    if engine.name == "ctranslate2":
        engine.check(search)
        check_compute(engine.exported_compute, device)
        check_convertible(run.record.model)
        find_export(run, on_export=on_export)
        return engine
    if not _can_export(run, search, device):
        return TORCH
    try:
        find_export(run, on_export=on_export)
    except (UserError, OSError) as error:
        on_export(f"{error}; so torch searches")
        return TORCH
    return EngineConfig(name="ctranslate2")


def _can_export(run: OpenedRun, search: SearchConfig, device: str) -> bool:
    """Return whether CTranslate2 can do a search with a run's model on a device."""
    if obstacle(search) or missing_package():
        return False
    try:
        check_convertible(run.record.model)
        check_compute("float32", device)
    except (RunError, EvalError):
        return False
    return True


def start_engine(
    run: TrainedRun, search: SearchConfig, engine: EngineConfig, *, device: str = "cpu"
) -> Engine:
    """Return an engine, chosen by `choose_engine`, with a run's model.

    Raises:
        RunError: If the run cannot be loaded.
    """
    if engine.name == "ctranslate2":
        folder = _export_folder(run.opened, weights_checksum(run.opened.checkpoint)) / CTRANSLATE2_FOLDER
        return CTranslate2Engine(folder=folder, config=search, compute=engine.exported_compute, device=device)
    return TorchEngine(model=run.loaded.model, config=search).to(device)


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
        RunError: If the model is no T5 1.1, or the exported one does not agree with it, now or before.
        DataError: If the run's data are gone.
    """
    weights = weights_checksum(run.checkpoint)
    folder = _export_folder(run, weights)
    if not _is_valid(folder, weights):
        _check_not_failed(folder)
        folder.parent.mkdir(exist_ok=True)
        lock = folder.with_name(f".{folder.name}.lock")
        if is_locked(lock):
            on_export(f"{folder}: another process exports this checkpoint; waiting for it")
        with file_lock(lock, name=folder, error=EvalError, seconds=_WAIT_SECONDS):
            if not _is_valid(folder, weights):
                _check_not_failed(folder)
                on_export(f"{folder}: exporting the checkpoint for CTranslate2, once")
                _export(run, folder, weights)
    return folder / CTRANSLATE2_FOLDER


def _export_folder(run: OpenedRun, weights: str) -> Path:
    return run.folder / EXPORTS / f"{run.checkpoint.name}-{weights[:16]}-{version('ctranslate2')}"


def _check_not_failed(folder: Path) -> None:
    """Refuse to repeat an export that did not agree with the run."""
    failed = folder.with_name(folder.name + FAILED)
    if (failed / _CERTIFICATE).is_file():
        raise RunError(f"{failed}: did not agree with the run; remove it to export again")


def _export(run: OpenedRun, folder: Path, weights: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    export_run(run.folder, folder, checkpoint=run.checkpoint)
    # The files of CTranslate2 are enough to translate, and `mnmt-model export` writes the others.
    (folder / _TRANSFORMERS_WEIGHTS).unlink()
    write_json(folder / RECORD, _record(folder, weights))


def _is_valid(folder: Path, weights: str) -> bool:
    """Return whether a complete export of these weights is there, unchanged, and agrees with the run."""
    try:
        agrees = read_json(folder / _CERTIFICATE)["agrees"]
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
