"""A batch of sentences as one sequence of tokens without padding."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the customary name

from mnmt_model.distributed.copies import to_device

PAD = 0
"""The padding token, which is also the start token of every target."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Sentences:
    """A batch of sentences as one sequence of tokens.

    Operations on single tokens use `(num_tokens, …)` tensors. Attention pads the tokens into a table and
    flattens the result.
    """

    tokens: Tensor
    """`(num_tokens,)` int64 token ids, sentence by sentence."""
    cells: Tensor
    """`(num_tokens,)` int64, the cell of each token in the padded table of `batch * width` cells."""
    positions: Tensor
    """`(num_tokens,)` int64, the position of each token in its sentence, from 0."""
    rows: Tensor
    """`(num_tokens,)` int64, the number of each token's sentence, from 0."""
    padding_mask: Tensor
    """`(batch, width)` bool, True where the padded table has no token."""

    @classmethod
    def from_padded(cls, ids: Tensor) -> Sentences:
        """Read a table `ids (batch, width)` of token ids, padded with 0."""
        padding_mask = ids == PAD
        cells = (~padding_mask).flatten().nonzero().squeeze(1)
        width = max(1, ids.size(1))
        return cls(
            tokens=ids.flatten()[cells],
            cells=cells,
            positions=cells % width,
            rows=cells // width,
            padding_mask=padding_mask,
        )

    @property
    def batch(self) -> int:
        """The number of sentences."""
        return self.padding_mask.size(0)

    @property
    def width(self) -> int:
        """The width of the padded table: the length of the longest sentence, or more."""
        return self.padding_mask.size(1)

    @property
    def num_tokens(self) -> int:
        """The number of tokens in all sentences."""
        return self.tokens.size(0)

    def previous_tokens(self) -> Tensor:
        """Return `(num_tokens,)`, the token before each token: the start token 0 before the first."""
        previous = F.pad(self.tokens[:-1], (1, 0), value=PAD)
        return previous.masked_fill(self.positions == 0, PAD)

    def predecessors(self) -> Tensor:
        """Return the indices of all tokens except the last of each sentence."""
        if self._is_full:
            indices = torch.arange(self.num_tokens, device=self.tokens.device).view(self.batch, self.width)
            return indices[:, :-1].flatten()
        # As many as the host knows, so that it does not wait for a count.
        return torch.nonzero_static(self.positions[1:] > 0, size=self.num_tokens - self.batch).squeeze(1)

    def sums(self, x: Tensor) -> Tensor:
        """Return the sums `(batch,)` over each sentence's tokens of `x (num_tokens,)`."""
        if self._is_full:
            return x.view(self.batch, self.width).sum(1)
        return x.new_zeros(self.batch).index_add_(0, self.rows, x)

    def pad(self, x: Tensor) -> Tensor:
        """Pad `x (num_tokens, features)` with zeros to a table `(batch, width, features)`."""
        shape = (self.batch, self.width, x.size(1))
        if self._is_full:
            return x.view(shape)
        table = x.new_zeros(self.batch * self.width, x.size(1))
        return table.index_copy_(0, self.cells, x).view(shape)

    def flatten(self, table: Tensor) -> Tensor:
        """Read the tokens `(num_tokens, features)` from a table `(batch, width, features)`."""
        flat = table.reshape(self.batch * self.width, table.size(2))
        return flat if self._is_full else flat.index_select(0, self.cells)

    @property
    def _is_full(self) -> bool:
        """Whether there is no padding; a compiled model does not ask, so that it serves both."""
        return not torch.compiler.is_compiling() and self.num_tokens == self.batch * self.width

    def to(self, device: torch.device) -> Sentences:
        """Return the same sentences on another device."""
        return Sentences(
            **{field.name: to_device(getattr(self, field.name), device) for field in fields(self)}
        )
