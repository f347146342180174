"""Decoding one target token at a time: caches, and the state of every hypothesis."""

from mnmt_model.transformer.decoding.incremental_model import IncrementalModel

__all__ = ["IncrementalModel"]
