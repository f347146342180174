"""Comparisons of rival laws on one table, and the verdict."""

from mnmt_laws.answers.comparison.contest import LawComparison, compare
from mnmt_laws.forecasts.rivals import RIVALS

__all__ = ["RIVALS", "LawComparison", "compare"]
