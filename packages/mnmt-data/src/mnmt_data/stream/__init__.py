"""Endless training batches from several tasks in exact proportion, and what a run read of them."""
