"""The search for each size's best learning rate, and batch, by successive halving."""

from mnmt_model.sweep.tuning.halving import Candidate, Halving, SearchConfig
from mnmt_model.sweep.tuning.study_settings import write_settings
from mnmt_model.sweep.tuning.trials import Trial
from mnmt_model.sweep.tuning.tune import SizeResult, tune_study

__all__ = ["Candidate", "Halving", "SearchConfig", "SizeResult", "Trial", "tune_study", "write_settings"]
