"""The questions of a report by name, in the order of the page."""

from __future__ import annotations

from collections.abc import Callable

from mnmt_laws.report.answer import Answer
from mnmt_laws.report.questions.comparison import answer_comparison
from mnmt_laws.report.questions.exposure import answer_exposure
from mnmt_laws.report.questions.fractions import answer_fractions
from mnmt_laws.report.questions.laws import answer_claims, answer_limits, answer_losses
from mnmt_laws.report.questions.mixtures import answer_design, answer_frontier, answer_recommendation
from mnmt_laws.report.questions.predictions import answer_back_tests, answer_held_out
from mnmt_laws.report.questions.runs import answer_quality, answer_runs
from mnmt_laws.report.study import Study

QUESTIONS: dict[str, Callable[[Study], Answer]] = {
    "recommendation": answer_recommendation,
    "losses": answer_losses,
    "quality": answer_quality,
    "irreducible": answer_limits,
    "held_out": answer_held_out,
    "back_tests": answer_back_tests,
    "frontier": answer_frontier,
    "exposure": answer_exposure,
    "fractions": answer_fractions,
    "claims": answer_claims,
    "comparison": answer_comparison,
    "design": answer_design,
    "runs": answer_runs,
}
"""Each raises TableError or ArgumentError where the table does not admit an answer."""

__all__ = ["QUESTIONS"]
