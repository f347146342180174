"""Training a run: its steps, on one process or several, its evaluations, and who watches it."""
