"""Run tables and run records: what was measured, checked and ready to fit."""
