"""Decoding one target token at a time: caches, and what a model remembers of each hypothesis."""
