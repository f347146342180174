"""The engine that searches batches of sources, and our own one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol

import torch

from mnmt_eval.search.config import SearchConfig
from mnmt_eval.search.dispatch import search
from mnmt_eval.search.protocol import SearchModel, State
from mnmt_eval.translate.window import Sources


class ScoredTokens(Protocol):
    """One translation of a source, as token ids; `mnmt_eval.search.Hypothesis` is one."""

    @property
    def tokens(self) -> Sequence[int]:
        """The tokens, with `</s>` where the model has ended it."""
        ...

    @property
    def log_prob(self) -> float:
        """The sum of the tokens' log-probabilities, in nats."""
        ...

    @property
    def score(self) -> float:
        """`log_prob` divided by the length penalty."""
        ...

    @property
    def is_complete(self) -> bool:
        """Whether it ends with `</s>`."""
        ...


class Engine(Protocol):
    """A model, and a program that searches its translations."""

    def search(self, sources: Sources) -> Sequence[Sequence[ScoredTokens]]:
        """Return the translations of each source, at least one, best score first.

        Raises:
            EvalError: If the model has diverged.
            RuntimeError: If memory does not suffice; the message says so. Callers then take fewer sources.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class NativeEngine(Generic[State]):
    """The search of `mnmt_eval.search`."""

    model: SearchModel[State]
    config: SearchConfig
    device: str = "cpu"
    """The device that the model is on."""

    def search(self, sources: Sources) -> Sequence[Sequence[ScoredTokens]]:
        """Return the translations of each source, best score first.

        Raises:
            EvalError: If the model has diverged.
            RuntimeError: If memory does not suffice.
        """
        return search(self.model, torch.from_numpy(sources).to(self.device), self.config)
