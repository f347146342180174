"""Files of the choices of each expert of a trained mixture on a test set, by task."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mnmt_data.store import read_record
from mnmt_model.transformer.model_config import ModelConfig

FOLDER = "experts"

BLOCKS = 20
"""Blocks of neighbouring lines of a test set that are counted separately, for standard errors."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskLoads:
    """The choices of the tokens of one task's test set, and the identity of the model; see `write_record`."""

    loads: NDArray[np.int64]
    """`(BLOCKS, layers, experts)`."""
    step: int
    weights: str
    """SHA-256 of the model's weights."""
    data: str
    """Fingerprint of the prepared data."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ExpertLoads:
    """The choices of the tokens of all tasks' test sets under one model."""

    step: int
    tasks: tuple[str, ...]
    loads: NDArray[np.int64]
    """`(BLOCKS, layers, tasks, experts)`."""


def mixture_names(config: ModelConfig) -> list[str]:
    """Return the names of a model's mixtures in order: `encoder 2`, or `layer 2` of a language model."""
    stacks = {"layer" if config.is_language_model else "decoder": config.decoder_layers}
    if not config.is_language_model:
        stacks = {"encoder": config.num_encoder_layers, **stacks}
    return [
        f"{stack} {layer + 1}"
        for stack, layers in stacks.items()
        for layer in range(layers)
        if config.has_experts(layer)
    ]


def loads_path(folder: Path, testset: str, task: str) -> Path:
    """Return the path of a run's file of choices on a test set and task."""
    return folder / FOLDER / f"{testset}.{task}.npz"


def read_expert_loads(folder: Path, testset: str) -> ExpertLoads | None:
    """Read a run's choices on a test set under the newest model that has any; None without files.

    Args:
        folder: The run's folder.
        testset: The test set.
    """
    paths = sorted(loads_path(folder, testset, "").parent.glob(f"{testset}.*.npz"))
    files = {
        path.name.removeprefix(f"{testset}.").removesuffix(".npz"): read_record(path, TaskLoads)
        for path in paths
    }
    loads = {task: file for task, file in files.items() if file is not None and "." not in task}
    if not loads:
        return None
    newest = max(loads.values(), key=lambda file: file.step)
    newest_of = {task: file.loads for task, file in loads.items() if file.weights == newest.weights}
    return ExpertLoads(
        step=newest.step, tasks=tuple(newest_of), loads=np.stack(list(newest_of.values()), axis=2)
    )
