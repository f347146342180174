"""Which law: rivals side by side, and a verdict that says where it is none."""

from mnmt_laws.answers.comparison.contest import LawComparison, compare
from mnmt_laws.answers.comparison.left_out import ERRORS
from mnmt_laws.answers.comparison.rivals import RIVALS

__all__ = ["ERRORS", "RIVALS", "LawComparison", "compare"]
