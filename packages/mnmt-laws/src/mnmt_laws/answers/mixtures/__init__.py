"""Mixtures, sizes and budgets: the frontier, targets, and the search over the simplex."""

from mnmt_laws.answers.mixtures.budget import SmallestBudget
from mnmt_laws.answers.mixtures.targets import SmallestSize, TargetMixture

__all__ = ["SmallestBudget", "SmallestSize", "TargetMixture"]
