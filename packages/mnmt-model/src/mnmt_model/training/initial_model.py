"""The initial model of a run: with random weights, or the weights of another run."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import torch

from mnmt_data.store import PreparedData
from mnmt_model.checkpoints import load_model, newest
from mnmt_model.distributed.world import World
from mnmt_model.errors import RunError
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.runs.run_data import check_vocabulary
from mnmt_model.runs.run_record import read_run
from mnmt_model.training.parallel import expert_ranks
from mnmt_model.transformer.build import build_model, initialise
from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.translation_model import TranslationModel

PRECISIONS = {"float32": torch.float32, "tf32": torch.float32, "bfloat16": torch.bfloat16}


def random_model(run: RunConfig, vocab_size: int, world: World) -> TranslationModel:
    """Return the run's model with random weights from its seed, and this process's part of the experts.

    Raises:
        RunError: If the number of processes or experts is not a multiple of `expert_parallel`.
    """
    model = build_model(
        run.model,
        vocab_size,
        dropout=run.train.dropout,
        dtype=PRECISIONS[run.train.precision],
        ranks=expert_ranks(run.model, run.train, world),
    )
    initialise(model, run.seed)
    return model


def initialise_from(model: TranslationModel, path: Path, data: PreparedData) -> None:
    """Load the weights of another run into `model`, in place.

    Args:
        model: A model with the same config as that run's.
        path: Folder of the run, for its newest checkpoint, or of one of its checkpoints.
        data: The data that the model will be trained on.

    Raises:
        RunError: If there is no checkpoint, or its run has another config or another vocabulary.
    """
    saved = newest(path)
    run = saved.parent.parent
    _check_config(model.config, run)
    check_vocabulary(run, data)
    load_model(saved, model)


def _check_config(config: ModelConfig, run: Path) -> None:
    saved = asdict(read_run(run).model.resolved())
    changes = {name: value for name, value in asdict(config.resolved()).items() if saved[name] != value}
    if changes:
        name, value = next(iter(changes.items()))
        needed = ", ".join(f"{name} = {saved[name]}" for name in changes)
        raise RunError(f"{run}: is of another `{name}` than {value}; to start from it a model needs {needed}")
