"""The runs of a study: which there are, what they take, and training them all."""

from mnmt_model.sweep.run_queue import Outcome, default_jobs, train_runs, training_cost
from mnmt_model.sweep.sweep_config import Grid, SweepConfig, run_configs

__all__ = ["Grid", "Outcome", "SweepConfig", "default_jobs", "run_configs", "train_runs", "training_cost"]
