"""Transformers for multilingual translation, trained over sizes and mixture weights."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mnmt_model.errors import RunError
    from mnmt_model.planning.flops import training_flops
    from mnmt_model.planning.parameters import Count, count
    from mnmt_model.planning.presets import PRESETS, Preset, preset
    from mnmt_model.runs.load import LoadedRun, load_run
    from mnmt_model.runs.run_config import RunPlan
    from mnmt_model.sweep.run_queue import Outcome, sweep
    from mnmt_model.sweep.sweep_config import SweepConfig, plan_runs
    from mnmt_model.train_config import TrainConfig
    from mnmt_model.training.run import train
    from mnmt_model.training.watcher import Watcher
    from mnmt_model.transformer.architectures import EncoderDecoder, LanguageModel
    from mnmt_model.transformer.build import build_model
    from mnmt_model.transformer.model_config import ModelConfig
    from mnmt_model.transformer.sentences import Sentences

__all__ = [
    "PRESETS",
    "Count",
    "EncoderDecoder",
    "LanguageModel",
    "LoadedRun",
    "ModelConfig",
    "Outcome",
    "Preset",
    "RunError",
    "RunPlan",
    "Sentences",
    "SweepConfig",
    "TrainConfig",
    "Watcher",
    "build_model",
    "count",
    "load_run",
    "plan_runs",
    "preset",
    "sweep",
    "train",
    "training_flops",
]

_HOMES = {
    "errors": ("RunError",),
    "load": ("LoadedRun", "load_run"),
    "planning.flops": ("training_flops",),
    "planning.parameter_count": ("Count", "count"),
    "planning.presets": ("PRESETS", "Preset", "preset"),
    "run_plan": ("RunPlan",),
    "run_queue": ("Outcome", "sweep"),
    "sweep_config": ("SweepConfig", "plan_runs"),
    "train_config": ("TrainConfig",),
    "training.run": ("train",),
    "training.watcher": ("Watcher",),
    "transformer.architectures": ("EncoderDecoder", "LanguageModel"),
    "transformer.build": ("build_model",),
    "transformer.model_config": ("ModelConfig",),
    "transformer.sentences": ("Sentences",),
}
"""{module: its public names}: found when asked for, so that what needs no torch does not wait for it."""


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"mnmt_model.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
