"""Study files, and tables of TOML or JSON as dataclasses."""

from mnmt_data.study.ranges import Ranges, check_ranges
from mnmt_data.study.structure import Changes, StructureError, structure, unknown_key
from mnmt_data.study.study_file import StudyFile, read_study

__all__ = [
    "Changes",
    "Ranges",
    "StructureError",
    "StudyFile",
    "check_ranges",
    "read_study",
    "structure",
    "unknown_key",
]
