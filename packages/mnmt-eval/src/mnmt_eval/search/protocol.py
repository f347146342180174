"""The protocols of models that can be searched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from torch import Tensor

PAD = 0
"""Padding of sources, and the token that every target starts from; never a token of a target."""

EOS = 1
"""The token that ends a sentence."""


class SearchState(Protocol):
    """A model's keys and values of sources and target prefixes, one row per hypothesis."""

    def select(self, rows: Tensor) -> Self:
        """Return the state of the given rows `(n,)` int64; rows may be repeated or left out.

        The searches do not use this state again.
        """
        ...


State = TypeVar("State", bound=SearchState)


class SearchModel(Protocol[State]):
    """A model that scores targets from left to right."""

    def encode(self, src: Tensor, padding_mask: Tensor) -> State:
        """Return the state before the first target token, one row per source.

        Args:
            src: `(batch, src_len)` int64 token ids.
            padding_mask: `(batch, src_len)`, True at padding.
        """
        ...

    def step(self, state: State, tokens: Tensor) -> tuple[Tensor, State]:
        """Append one token to every hypothesis, and score the tokens that may follow.

        Args:
            state: The state of every hypothesis.
            tokens: `(rows,)` int64, the token that each hypothesis is continued by; `PAD` at first.

        Returns:
            `(rows, vocab_size)` float32 log-probabilities, and the state after `tokens`.
        """
        ...


class FlatSearchState(Protocol):
    """A model's keys and values of sources and of all their hypotheses, one row per source.

    Keys and values lie in a buffer of `beam * max_steps` slots per source. Step `t` writes those of its
    `beam` tokens into slots `t * beam` to `(t + 1) * beam - 1`, and nothing is moved when hypotheses branch.
    A model may drop slots that no live hypothesis descends from.
    """

    def keep(self, rows: Tensor) -> Self:
        """Return the state of the given sources `(n,)` int64, ascending; the others have left the batch."""
        ...


Flat = TypeVar("Flat", bound=FlatSearchState)


@runtime_checkable
class FlatSearchModel(Protocol[Flat]):
    """A model that scores targets from left to right without moving its cache when hypotheses branch."""

    def start_flat(self, src: Tensor, padding_mask: Tensor, *, beam: int, max_steps: int) -> Flat:
        """Return the state before the first target token.

        Args:
            src: `(batch, src_len)` int64 token ids.
            padding_mask: `(batch, src_len)`, True at padding.
            beam: Hypotheses per source.
            max_steps: The largest number of calls of `step_flat`.
        """
        ...

    def step_flat(
        self, state: Flat, tokens: Tensor, ancestors: Tensor, positions: Tensor
    ) -> tuple[Tensor, Flat]:
        """Append one token to every hypothesis, and score the tokens that may follow.

        The state that is passed in must not be used again.

        Args:
            state: The state of every source.
            tokens: `(batch, beam)` int64, the token that each hypothesis is continued by; `PAD` at first.
            ancestors: `(batch, beam, beam * steps)` bool, with `steps` counting this one: the slots that each
                hypothesis consists of. They are the slot that this step writes and those of earlier tokens.
            positions: `(batch, beam)` int64, the position of each token in its hypothesis, from 0.

        Returns:
            `(batch, beam, vocab_size)` float32 log-probabilities, and the state after `tokens`.
        """
        ...
