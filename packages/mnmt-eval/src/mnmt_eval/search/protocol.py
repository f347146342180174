"""What search and translation need of a model and of a vocabulary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, Self, TypeVar, runtime_checkable

from torch import Tensor

from mnmt_data.store import Ragged

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
            state: Of every hypothesis.
            tokens: `(rows,)` int64, the token each hypothesis is continued by; `PAD` at first.

        Returns:
            `(rows, vocab_size)` float32 log-probabilities, and the state after `tokens`.
        """
        ...


class FlatState(Protocol):
    """What a model knows of sources and of every hypothesis there ever was, a row a source.

    Keys and values lie in a buffer of `beam * max_steps` slots a source: step `t` writes those of its `beam`
    tokens into slots `t * beam` to `(t + 1) * beam - 1`, and nothing is moved when hypotheses branch. What a
    model keeps of slots that no hypothesis descends from is its own affair.
    """

    def keep(self, rows: Tensor) -> Self:
        """The state of the given sources `(n,)` int64, ascending; the others have left."""
        ...


Flat = TypeVar("Flat", bound=FlatState)


@runtime_checkable
class FlatModel(Protocol[Flat]):
    """A model that translates left to right without moving what it knows when hypotheses branch."""

    def start_flat(self, src: Tensor, padding_mask: Tensor, *, beam: int, max_steps: int) -> Flat:
        """The state before the first target token.

        Args:
            src: `(batch, src_len)` int64 token ids.
            padding_mask: `(batch, src_len)`, True at padding.
            beam: Hypotheses of a source.
            max_steps: How often `step_flat` is called at most.
        """
        ...

    def step_flat(
        self, state: Flat, tokens: Tensor, ancestors: Tensor, positions: Tensor
    ) -> tuple[Tensor, Flat]:
        """Log-probabilities of what comes next, and the state there; the earlier one must not be used again.

        Args:
            state: Of every source.
            tokens: `(batch, beam)` int64, the token each hypothesis is continued by; `PAD` at first.
            ancestors: `(batch, beam, beam * steps)` bool with `steps` counting this one, the slots each
                hypothesis consists of: its token's own, which this step writes, and those of tokens before.
            positions: `(batch, beam)` int64, the place of each token in its hypothesis, from 0: how many
                ancestors it has but itself.

        Returns:
            `(batch, beam, vocab_size)` float32 log-probabilities, and the state after `tokens`.
        """
        ...


class Vocabulary(Protocol):
    """Text to token ids and back."""

    def encode_sources(self, lines: Sequence[str], *, target: str) -> Ragged:
        """Sources as the model was trained on them: the target language's tag in its place, `EOS` at the end.

        Raises:
            DataError: If there is no such target language.
        """
        ...

    def decode(self, ids: Iterable[int]) -> str:
        """Text of token ids; special ids leave nothing."""
        ...
