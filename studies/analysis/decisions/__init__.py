"""Decisions on a model's mixture: methods choose by smaller models, and trained ones judge the choices."""
