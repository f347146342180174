"""Trained runs: what they translate with, their test sets, and how they are scored."""
