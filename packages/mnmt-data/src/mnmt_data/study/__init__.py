"""Study files, and tables of TOML or JSON as dataclasses."""

from mnmt_data.study.structure import Changes, StructureError, structure, unknown_key
from mnmt_data.study.study_file import StudyFile, read_study

__all__ = ["Changes", "StructureError", "StudyFile", "read_study", "structure", "unknown_key"]
