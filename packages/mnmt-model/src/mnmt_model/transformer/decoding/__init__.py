"""Decoding one target token at a time: caches, and the state of every hypothesis."""

from mnmt_model.transformer.decoding.incremental_model import IncrementalModel
from mnmt_model.transformer.decoding.native_model import NativeModel
from mnmt_model.transformer.decoding.step_model import StepModel, step_model

__all__ = ["IncrementalModel", "NativeModel", "StepModel", "step_model"]
