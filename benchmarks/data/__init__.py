"""Measurements of mnmt-data."""
