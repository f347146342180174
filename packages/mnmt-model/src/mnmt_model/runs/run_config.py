"""What one run is: everything needed to train it, before it is trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.model_config import ModelConfig

Role = Literal["fit", "held-out"]


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """One model of a study."""

    name: str
    """Name of the run's folder."""
    study: str
    """Name of the study it belongs to."""
    role: Role
    """Whether the laws are fitted to this run, or predict it."""
    model: ModelConfig
    train: TrainConfig
    mixture: Mapping[str, float]
    """Training weight of each task."""
    seed: int
    """Of the initial weights, the dropout and the order of the data."""
    data: Path
    """Prepared-data folder."""
