"""Study files, and tables of TOML or JSON as dataclasses."""

from mnmt_data.study.structure import StructureError, structure
from mnmt_data.study.study_file import StudyFile, read_study

__all__ = ["StructureError", "StudyFile", "read_study", "structure"]
