"""What search and translation need of a model and of a vocabulary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, Self, TypeVar

from torch import Tensor

from mnmt_data.ragged import Ragged

PAD = 0
"""Padding of sources, and the token every target starts from; never a target's token."""

EOS = 1
"""The token that ends a sentence."""


class DecoderState(Protocol):
    """What a model knows of sources and targets so far, a row a hypothesis."""

    def select(self, rows: Tensor) -> Self:
        """The state of the given rows `(n,)` int64, which may repeat and leave out."""
        ...


State = TypeVar("State", bound=DecoderState)


class TranslationModel(Protocol[State]):
    """A model that translates left to right."""

    def encode(self, src: Tensor, padding_mask: Tensor) -> State:
        """The state before the first target token, a row a source.

        Args:
            src: `(batch, src_len)` int64 token ids.
            padding_mask: `(batch, src_len)`, True at padding.
        """
        ...

    def step(self, state: State, tokens: Tensor) -> tuple[Tensor, State]:
        """Log-probabilities of what comes next, and the state there.

        Args:
            state: of every hypothesis.
            tokens: `(rows,)` int64, the token each hypothesis is continued by; `PAD` at first.

        Returns:
            `(rows, vocab_size)` float32 log-probabilities, and the state after `tokens`.
        """
        ...


class Vocabulary(Protocol):
    """Text to token ids and back."""

    def encode_sources(self, lines: Sequence[str], *, target: str) -> Ragged:
        """Sources as the model was trained on them: the target language's tag in its place, `EOS` at the end.

        Raises:
            DataError: if there is no such target language.
        """
        ...

    def decode(self, ids: Iterable[int]) -> str:
        """Text of token ids; special ids leave nothing."""
        ...
