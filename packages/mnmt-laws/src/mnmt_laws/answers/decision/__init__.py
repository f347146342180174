"""Decisions by what a choice costs: wants, limits, the mixture of least mean cost, and what is at stake."""

from mnmt_laws.answers.decision.choice import Choice, Question, choose, spread_of
from mnmt_laws.answers.decision.limits import Limits
from mnmt_laws.answers.decision.stakes import Rival
from mnmt_laws.answers.decision.wants import Aim, Want

__all__ = ["Aim", "Choice", "Limits", "Question", "Rival", "Want", "choose", "spread_of"]
