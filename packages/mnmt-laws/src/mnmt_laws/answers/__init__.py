"""Answers that follow from fits: effective fractions, the frontier, the best mixture and the next runs."""
