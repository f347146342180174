"""Analyses of the studies' committed tables, beyond what `mnmt-laws report` writes.

Run them from the repository's root: `python -m studies.analysis.claims`.
"""
