"""The decoder: pre-norm layers of causal self-attention, cross-attention and feed-forward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from mnmt_model.attention import Attention
from mnmt_model.encoder import EPSILON
from mnmt_model.feedforward import GatedFeedForward
from mnmt_model.positions import RelativePositionBias
from mnmt_model.shape import Shape


@dataclass(frozen=True, kw_only=True)
class LayerCache:
    """Keys and values `(batch, num_heads, len, head_dim)` one decoder layer attends to."""

    self_keys: Tensor
    self_values: Tensor
    cross_keys: Tensor
    cross_values: Tensor

    def select(self, rows: Tensor) -> LayerCache:
        """The cache of the given rows, in their order."""
        return LayerCache(
            self_keys=self.self_keys[rows],
            self_values=self.self_values[rows],
            cross_keys=self.cross_keys[rows],
            cross_values=self.cross_values[rows],
        )


class DecoderLayer(nn.Module):
    """Self-attention, cross-attention and feed-forward, each x + sublayer(norm(x))."""

    def __init__(self, shape: Shape, dropout: float) -> None:
        super().__init__()
        self.self_norm = nn.RMSNorm(shape.d_model, eps=EPSILON)
        self.self_attention = Attention(shape, dropout)
        self.cross_norm = nn.RMSNorm(shape.d_model, eps=EPSILON)
        self.cross_attention = Attention(shape, dropout)
        self.feed_forward_norm = nn.RMSNorm(shape.d_model, eps=EPSILON)
        self.feed_forward = GatedFeedForward(shape, dropout)
        self.dropout = nn.Dropout(dropout)

    def start(self, memory: Tensor) -> LayerCache:
        """The cache before the first target token, of source states `memory (batch, src_len, d_model)`."""
        cross_keys, cross_values = self.cross_attention.project(memory)
        empty = cross_keys[:, :, :0]
        return LayerCache(
            self_keys=empty, self_values=empty, cross_keys=cross_keys, cross_values=cross_values
        )

    def forward(
        self, x: Tensor, cache: LayerCache, self_bias: Tensor, cross_bias: Tensor | None
    ) -> tuple[Tensor, LayerCache]:
        """Continue by `x (batch, new_len, d_model)`; returns the new states and the cache grown by them."""
        normed = self.self_norm(x)
        new_keys, new_values = self.self_attention.project(normed)
        keys = torch.cat([cache.self_keys, new_keys], dim=2)
        values = torch.cat([cache.self_values, new_values], dim=2)
        x = x + self.dropout(self.self_attention.attend(normed, keys, values, self_bias))
        cross = self.cross_attention.attend(
            self.cross_norm(x), cache.cross_keys, cache.cross_values, cross_bias
        )
        x = x + self.dropout(cross)
        x = x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))
        grown = LayerCache(
            self_keys=keys,
            self_values=values,
            cross_keys=cache.cross_keys,
            cross_values=cache.cross_values,
        )
        return x, grown


class Decoder(nn.Module):
    """A stack of decoder layers with one causal relative position bias and a final norm."""

    def __init__(self, shape: Shape, dropout: float) -> None:
        super().__init__()
        self.position_bias = RelativePositionBias(shape.num_heads, bidirectional=False)
        self.layers = nn.ModuleList(DecoderLayer(shape, dropout) for _ in range(shape.decoder_layers))
        self.norm = nn.RMSNorm(shape.d_model, eps=EPSILON)
        self.dropout = nn.Dropout(dropout)

    def start(self, memory: Tensor) -> list[LayerCache]:
        """Caches, one a layer, before the first target token."""
        return [layer.start(memory) for layer in self._layers()]

    def forward(
        self, embedded: Tensor, caches: Sequence[LayerCache], padding_bias: Tensor | None
    ) -> tuple[Tensor, list[LayerCache]]:
        """Continue every target by `embedded (batch, new_len, d_model)`.

        Args:
            embedded: embedded target tokens that follow those already in the caches.
            caches: one a layer, from `start` or the previous call.
            padding_bias: `(batch, 1, 1, src_len)` over the source, or None.

        Returns:
            Target states `(batch, new_len, d_model)` and the grown caches.
        """
        new_len = embedded.size(1)
        self_bias = self._causal_bias(new_len, caches[0].self_keys.size(2) + new_len)
        x = self.dropout(embedded)
        grown = []
        for layer, cache in zip(self._layers(), caches, strict=True):
            x, layer_cache = layer(x, cache, self_bias, padding_bias)
            grown.append(layer_cache)
        return self.dropout(self.norm(x)), grown

    def _causal_bias(self, query_len: int, key_len: int) -> Tensor:
        bias: Tensor = self.position_bias(query_len, key_len)
        hidden = bias.new_full((query_len, key_len), -torch.inf).triu(key_len - query_len + 1)
        return bias + hidden

    def _layers(self) -> list[DecoderLayer]:
        return [layer for layer in self.layers if isinstance(layer, DecoderLayer)]
