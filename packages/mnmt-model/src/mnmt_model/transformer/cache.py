"""What a decoder remembers of sources and targets so far, a row a hypothesis."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from mnmt_model.transformer.attention import Attention


@dataclass(frozen=True, kw_only=True, eq=False)
class KeysValues:
    """Projected states `(rows, num_heads, len, d_head)` that one attention sees."""

    keys: Tensor
    values: Tensor

    def select(self, rows: Tensor) -> KeysValues:
        """Those of the given rows, in their order."""
        return KeysValues(keys=self.keys[rows], values=self.values[rows])

    def empty(self) -> KeysValues:
        """As many rows, with nothing to see."""
        return KeysValues(keys=self.keys[:, :, :0], values=self.values[:, :, :0])


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerCache:
    """What one layer attends to."""

    own: KeysValues
    """Of the tokens so far; in a language model the source's come first."""
    cross: KeysValues | None = None
    """Of the source, where the layer has cross-attention."""

    def select(self, rows: Tensor) -> LayerCache:
        """The cache of the given rows, in their order."""
        return LayerCache(own=self.own.select(rows), cross=self.cross and self.cross.select(rows))


@dataclass(frozen=True, kw_only=True, eq=False)
class DecoderState:
    """Caches of every layer and the source's padding."""

    layers: tuple[LayerCache, ...]
    src_hidden: Tensor
    """`(rows, src_width)` bool, True at padding."""
    length: int = 0
    """Target tokens so far."""

    def select(self, rows: Tensor) -> DecoderState:
        """The state of the given rows `(n,)`, which may repeat and leave out."""
        layers = tuple(layer.select(rows) for layer in self.layers)
        return replace(self, layers=layers, src_hidden=self.src_hidden[rows])


class Growing:
    """The pattern of one new token a row, that sees what came before and itself."""

    def __init__(self, cache: KeysValues, bias: Tensor) -> None:
        self.cache = cache
        """Grown by the new token once the pattern was used."""
        self.bias = bias
        """`(rows or 1, num_heads or 1, 1, len + 1)`."""

    def __call__(self, attention: Attention, x: Tensor) -> Tensor:
        """Attend from `x (rows, d_model)`."""
        keys = torch.cat([self.cache.keys, attention.heads(attention.k(x)[:, None])], dim=2)
        values = torch.cat([self.cache.values, attention.heads(attention.v(x)[:, None])], dim=2)
        self.cache = KeysValues(keys=keys, values=values)
        return _attend(attention, x, self.cache, self.bias)


@dataclass(frozen=True, kw_only=True, eq=False)
class Fixed:
    """The pattern of one new token a row that sees the source."""

    cache: KeysValues
    bias: Tensor
    """`(rows, 1, 1, src_width)`."""

    def __call__(self, attention: Attention, x: Tensor) -> Tensor:
        """Attend from `x (rows, d_model)`."""
        return _attend(attention, x, self.cache, self.bias)


def _attend(attention: Attention, x: Tensor, cache: KeysValues, bias: Tensor) -> Tensor:
    queries = attention.heads(attention.q(x)[:, None])
    return attention.attend(queries, cache.keys, cache.values, bias).squeeze(1)
