"""Twelve languages from English in one model: against a model for each, and with experts."""
