"""Initial weights from another run."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from mnmt_data.prepared import Prepared
from mnmt_model.checkpoints import load_model, newest
from mnmt_model.errors import RunError
from mnmt_model.runs.run_data import check_vocabulary
from mnmt_model.runs.run_record import read_run
from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.translation_model import TranslationModel


def initialise_from(model: TranslationModel, path: Path, data: Prepared) -> None:
    """Give `model` the weights of another run, in place.

    Args:
        model: Of the config of that run.
        path: The run's folder, for its newest checkpoint, or a checkpoint in it.
        data: What the model will be trained on.

    Raises:
        RunError: If there is no checkpoint, or its run has another config or another vocabulary.
    """
    saved = newest(path)
    run = saved.parent.parent
    _check_config(model.config, run)
    check_vocabulary(run, data)
    load_model(saved, model)


def _check_config(config: ModelConfig, run: Path) -> None:
    theirs = asdict(ModelConfig(**read_run(run)["config"]["model"]).resolved())
    differing = {name: value for name, value in asdict(config.resolved()).items() if theirs[name] != value}
    if differing:
        name, value = next(iter(differing.items()))
        needed = ", ".join(f"{name} = {theirs[name]}" for name in differing)
        raise RunError(f"{run}: is of another `{name}` than {value}; to start from it a model needs {needed}")
