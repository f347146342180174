"""Transformers for multilingual translation, trained over sizes and mixture weights."""

from mnmt_model.build import build_model
from mnmt_model.encoder_decoder import EncoderDecoder
from mnmt_model.errors import RunError
from mnmt_model.language_model import LanguageModel
from mnmt_model.load import LoadedRun, load_run
from mnmt_model.parameter_count import Count, count
from mnmt_model.presets import PRESETS, preset
from mnmt_model.run_plan import RunPlan
from mnmt_model.run_queue import Outcome, sweep
from mnmt_model.model_config import ModelConfig
from mnmt_model.sweep_config import SweepConfig, plan_runs
from mnmt_model.train_config import TrainConfig
from mnmt_model.training import train

__all__ = [
    "PRESETS",
    "Count",
    "EncoderDecoder",
    "LanguageModel",
    "LoadedRun",
    "Outcome",
    "RunError",
    "RunPlan",
    "ModelConfig",
    "SweepConfig",
    "TrainConfig",
    "build_model",
    "count",
    "load_run",
    "plan_runs",
    "preset",
    "sweep",
    "train",
]
