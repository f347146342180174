"""Measurements of mnmt-eval."""
