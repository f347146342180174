"""Forecasts: an average over the laws that a table admits, weighted by what they predicted."""
