"""Decisions by what a choice costs: wants, limits, the mixture of least mean cost, and what is at stake."""

from mnmt_laws.answers.decision.choice import Choice, Question, choose, spread_of
from mnmt_laws.answers.decision.limits import Limits
from mnmt_laws.answers.decision.measured import (
    AdviceTest,
    Measured,
    back_test_advice,
    cost_curve,
    measured_costs,
)
from mnmt_laws.answers.decision.stakes import Rival
from mnmt_laws.answers.decision.wants import Aim, Want

__all__ = [
    "AdviceTest",
    "Aim",
    "Choice",
    "Limits",
    "Measured",
    "Question",
    "Rival",
    "Want",
    "back_test_advice",
    "choose",
    "cost_curve",
    "measured_costs",
    "spread_of",
]
