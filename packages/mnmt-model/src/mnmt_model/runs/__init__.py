"""Runs: their configuration, their record on the disk, their data, and their models, loaded and measured.

Exported here is what needs no torch; `mnmt_model.load_run` and `mnmt_model.write_log_probs` load a model.
"""

from mnmt_model.runs.expert_loads import ExpertLoads, mixture_names, read_expert_loads
from mnmt_model.runs.run_config import Branch, RunConfig, new_record
from mnmt_model.runs.run_data import check_vocabulary, data_folder, open_data
from mnmt_model.runs.run_record import (
    EVALS,
    METRICS,
    RUN,
    Eval,
    RunRecord,
    append_evals,
    find_runs,
    read_evals,
    read_run,
    write_run,
)
from mnmt_model.runs.specialisation import Specialisation, specialisation

__all__ = [
    "EVALS",
    "METRICS",
    "RUN",
    "Branch",
    "Eval",
    "ExpertLoads",
    "RunConfig",
    "RunRecord",
    "Specialisation",
    "append_evals",
    "check_vocabulary",
    "data_folder",
    "find_runs",
    "mixture_names",
    "new_record",
    "open_data",
    "read_evals",
    "read_expert_loads",
    "read_run",
    "specialisation",
    "write_run",
]
