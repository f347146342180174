"""The runs of a study: list them, plan their cost, and train them."""

from mnmt_model.sweep.next_run import training_cost
from mnmt_model.sweep.run_queue import Outcome, SweepWatcher, train_runs
from mnmt_model.sweep.study_runs import run_configs
from mnmt_model.sweep.sweep_config import GoalConfig, Grid, SweepConfig
from mnmt_model.sweep.workers import default_jobs

__all__ = [
    "GoalConfig",
    "Grid",
    "Outcome",
    "SweepConfig",
    "SweepWatcher",
    "default_jobs",
    "run_configs",
    "train_runs",
    "training_cost",
]
