"""Study files, and tables of TOML or JSON as dataclasses."""

from mnmt_data.study.ranges import Ranges, check_ranges
from mnmt_data.study.sections import NewRuns, new_runs_chooser
from mnmt_data.study.structure import Changes, StructureError, structure, unknown_key
from mnmt_data.study.study_file import StudyFile, read_study

__all__ = [
    "Changes",
    "NewRuns",
    "Ranges",
    "StructureError",
    "StudyFile",
    "check_ranges",
    "new_runs_chooser",
    "read_study",
    "structure",
    "unknown_key",
]
