"""Measurements of mnmt-laws."""
