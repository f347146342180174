"""Figures, one a file: each draws on a `matplotlib.figure.Figure` and opens no window."""
