"""The engine that searches batches of sources, and our own one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, Self

import torch

from mnmt_eval.search.config import SearchConfig
from mnmt_eval.search.dispatch import search
from mnmt_eval.search.hypotheses import Hypothesis
from mnmt_eval.search.protocol import SearchModel, State
from mnmt_eval.translate.window import Sources


class Engine(Protocol):
    """A model, and a program that searches its translations."""

    def search(self, sources: Sources) -> Sequence[Sequence[Hypothesis]]:
        """Return the translations of each source, at least one, best score first.

        Raises:
            EvalError: If the model has diverged.
            RuntimeError: If memory does not suffice; the message says so. Callers then take fewer sources.
        """
        ...

    def to(self, device: str) -> Self:
        """Return the engine on a device such as `cuda:1`."""
        ...


@dataclass(frozen=True, kw_only=True)
class TorchEngine(Generic[State]):
    """The search of `mnmt_eval.search`."""

    model: SearchModel[State]
    config: SearchConfig
    device: str = "cpu"
    """The device that the model is on."""

    def search(self, sources: Sources) -> Sequence[Sequence[Hypothesis]]:
        """Return the translations of each source, best score first.

        Raises:
            EvalError: If the model has diverged.
            RuntimeError: If memory does not suffice.
        """
        return search(self.model, torch.from_numpy(sources).to(self.device), self.config)

    def to(self, device: str) -> Self:
        """Return the engine on a device; a model that is elsewhere must have a method `to`."""
        if device == self.device:
            return self
        model: Any = self.model
        return replace(self, model=model.to(device), device=device)
