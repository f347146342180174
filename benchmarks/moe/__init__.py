"""Measurements of mnmt-moe-ext."""
