"""Sentences of different lengths, their tokens one after the other, with no padding between them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

PAD = 0
"""Padding, and the token every target starts from."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Sentences:
    """A batch of sentences as one run of tokens.

    Whatever acts on each token alone acts on `(num_tokens, …)` tensors; attention, which compares the tokens
    of a sentence, lays them into a padded table and back.
    """

    tokens: Tensor
    """`(num_tokens,)` int64 token ids, sentence by sentence."""
    cells: Tensor
    """`(num_tokens,)` int64, the place of each token in the padded table of `batch * width` cells."""
    hidden: Tensor
    """`(batch, width)` bool, True where the padded table has no token."""

    @classmethod
    def from_padded(cls, ids: Tensor) -> Sentences:
        """The sentences of a table `ids (batch, width)`, in which each row is filled up with 0."""
        hidden = ids == PAD
        cells = (~hidden).flatten().nonzero().squeeze(1)
        return cls(tokens=ids.flatten()[cells], cells=cells, hidden=hidden)

    @property
    def batch(self) -> int:
        """Sentences."""
        return self.hidden.size(0)

    @property
    def width(self) -> int:
        """Tokens of the longest sentence."""
        return self.hidden.size(1)

    @property
    def num_tokens(self) -> int:
        """Tokens of all sentences."""
        return self.tokens.size(0)

    @property
    def positions(self) -> Tensor:
        """`(num_tokens,)` each token's place in its sentence, from 0."""
        return self.cells % max(1, self.width)

    @property
    def rows(self) -> Tensor:
        """`(num_tokens,)` the sentence each token is of, from 0."""
        return self.cells // max(1, self.width)

    def shifted(self) -> Tensor:
        """`(num_tokens,)` what precedes each token: the start token 0 before a first one."""
        before = F.pad(self.tokens[:-1], (1, 0), value=PAD)
        return before.masked_fill(self.positions == 0, PAD)

    def pad(self, x: Tensor) -> Tensor:
        """Lay `x (num_tokens, features)` into a table `(batch, width, features)` with zeros elsewhere."""
        shape = (self.batch, self.width, x.size(1))
        if self._is_full:
            return x.view(shape)
        table = x.new_zeros(self.batch * self.width, x.size(1))
        return table.index_copy_(0, self.cells, x).view(shape)

    def flatten(self, table: Tensor) -> Tensor:
        """Take the tokens `(num_tokens, features)` out of a table `(batch, width, features)`."""
        flat = table.reshape(self.batch * self.width, table.size(2))
        return flat if self._is_full else flat.index_select(0, self.cells)

    @property
    def _is_full(self) -> bool:
        return self.num_tokens == self.batch * self.width

    def to(self, device: torch.device) -> Sentences:
        """The same sentences on another device."""
        tokens, cells, hidden = (
            tensor.to(device, non_blocking=True) for tensor in (self.tokens, self.cells, self.hidden)
        )
        return replace(self, tokens=tokens, cells=cells, hidden=hidden)
