"""Mixtures, sizes and budgets: the frontier, targets, and the search over the simplex."""
