"""Answers that follow from fits: effective fractions, the frontier, the best mixture and the next runs."""

from mnmt_laws.answers.claims import Claim
from mnmt_laws.answers.comparison import LawComparison
from mnmt_laws.answers.design import Design
from mnmt_laws.answers.fractions import EffectiveFractions
from mnmt_laws.answers.mixtures import SmallestBudget, SmallestSize, TargetMixture
from mnmt_laws.answers.predictions import HeldOut
from mnmt_laws.answers.recommendation import Recommendation

__all__ = [
    "Claim",
    "Design",
    "EffectiveFractions",
    "HeldOut",
    "LawComparison",
    "Recommendation",
    "SmallestBudget",
    "SmallestSize",
    "TargetMixture",
]
