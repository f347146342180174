"""Fits of laws to observations: estimates, refits, intervals, diagnostics and storage."""
