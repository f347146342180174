"""The choice of what scores one token at a time."""

from __future__ import annotations

from typing import Any, Protocol

from torch import Tensor

from mnmt_model.transformer.decoding.incremental_model import IncrementalModel
from mnmt_model.transformer.decoding.native_model import NativeModel
from mnmt_model.transformer.translation_model import TranslationModel


class StepModel(Protocol):
    """A model that reads sources, and then scores one more token of every hypothesis a step."""

    translation_model: TranslationModel

    def encode(self, src: Tensor, padding_mask: Tensor) -> Any:
        """Return the state before the first target token; see `IncrementalModel.encode`."""
        ...

    def step(self, state: Any, tokens: Tensor) -> tuple[Tensor, Any]:
        """Return log-probabilities and the next state; see `IncrementalModel.step`."""
        ...


def step_model(model: TranslationModel) -> StepModel:
    """Return what scores one token at a time where the model is now: in C++, or with torch's operators."""
    return NativeModel(model) if NativeModel.can_decode(model) else IncrementalModel(model)
