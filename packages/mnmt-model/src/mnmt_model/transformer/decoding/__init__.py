"""Decode one target token at a time: caches, and states of hypotheses."""

from mnmt_model.transformer.decoding.incremental_model import IncrementalModel

__all__ = ["IncrementalModel"]
