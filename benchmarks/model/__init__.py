"""Measurements of mnmt-model."""
