"""Multi-head attention, relative positions, sinusoids and masks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_model.transformer.model_config import NUM_BUCKETS, ModelConfig
from mnmt_model.transformer.modules import Dropout, Linear
from mnmt_model.transformer.operations import Spans, attention, ragged_attention, rows

HIDDEN = -1e9
"""The score of a hidden key. It is finite, so that a query that sees no key yields no NaN."""

MAX_DISTANCE = 128
"""Distance from which all positions share the last bucket."""

TABLE_STEP = 256
"""Tables of sinusoids are made for multiples of so many positions."""


@dataclass(frozen=True, kw_only=True, eq=False)
class KeysValues:
    """Keys and values `(rows, num_heads, len, head_dim)` that one attention compares queries with."""

    keys: Tensor
    values: Tensor

    def select(self, rows: Tensor) -> KeysValues:
        """Return the keys and values of the given rows, in their order."""
        return KeysValues(keys=self.keys.index_select(0, rows), values=self.values.index_select(0, rows))

    def contiguous(self) -> KeysValues:
        """Return the same keys and values in contiguous memory, so that products need no copy."""
        return KeysValues(keys=self.keys.contiguous(), values=self.values.contiguous())


class Pattern(Protocol):
    """Which tokens see which: lays states into padded tables, attends, and returns a state a query."""

    def __call__(self, attention: Attention, x: Tensor) -> Tensor:
        """Return attended values `(num_queries, d_attention)`, given states `x (num_tokens, d_model)`."""
        ...


class Attention(nn.Module):
    """o(softmax(q kᵀ + bias) v) in `num_heads` heads; a pattern says which tokens are compared."""

    joint_maps = (("q", "k", "v"), ("k", "v"))
    """The maps that one product computes."""

    def __init__(self, config: ModelConfig, dropout: float) -> None:
        super().__init__()
        self.num_heads = config.num_heads
        self.scale = config.resolved_head_dim**-0.5 if config.scaled_attention else 1.0
        self.q = Linear(config.d_model, config.d_attention, bias=config.biases)
        self.k = Linear(config.d_model, config.d_attention, bias=config.biases)
        self.v = Linear(config.d_model, config.d_attention, bias=config.biases)
        self.o = Linear(config.d_attention, config.d_model, bias=config.biases)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, pattern: Pattern) -> Tensor:
        """Map `x (num_tokens, d_model)` to `(num_queries, d_model)`."""
        output: Tensor = self.o(pattern(self, x))
        return output

    def heads(self, table: Tensor) -> Tensor:
        """Split a table `(batch, len, d_attention)` into heads `(batch, num_heads, len, head_dim)`."""
        return table.view(*table.shape[:2], self.num_heads, -1).transpose(1, 2)

    def split_heads(self, table: Tensor, number: int) -> tuple[Tensor, ...]:
        """Split a table of `number` maps' outputs, `(batch, len, number * d_attention)`, into their heads.

        Returns:
            `number` tensors `(batch, num_heads, len, head_dim)`.
        """
        heads = table.view(*table.shape[:2], number, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        return heads.unbind()

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
        """Return attended values `(batch, query_len, d_attention)`.

        Args:
            queries: `(batch, num_heads, query_len, head_dim)`.
            keys: `(batch, num_heads, key_len, head_dim)`.
            values: Shaped like `keys`.
            bias: Is added to the scores `(batch, num_heads, query_len, key_len)`; its first two sizes may be
                1.
        """
        if queries.is_cuda:
            rate = self.dropout.rate if self.training else 0.0
            attended = F.scaled_dot_product_attention(
                queries, keys, values, attn_mask=bias, dropout_p=rate, scale=self.scale
            )
        else:
            batch, heads, query_len, _ = queries.shape
            mask = self.dropout.mask((batch * heads, query_len, keys.size(2)), values)
            attended = attention(queries, keys, values, bias, scale=self.scale, mask=mask)
        return attended.transpose(1, 2).flatten(2)

    def attend_spans(self, queries: Tensor, keys_values: Tensor | None, spans: Spans) -> Tensor:
        """Return attended values `(num_queries, d_attention)`, computed in C++; see `ragged_attention`."""
        rate = self.dropout.rate if self.training else 0.0
        return ragged_attention(
            queries, keys_values, spans, num_heads=self.num_heads, scale=self.scale, rate=rate
        )


class RelativePositionBias(nn.Module):
    """A learned scalar for each bucket of distances and head (T5), shared by all layers of a stack."""

    def __init__(self, num_heads: int, *, bidirectional: bool) -> None:
        super().__init__()
        self.bidirectional = bidirectional
        self.weight = nn.Parameter(torch.empty(NUM_BUCKETS, num_heads))

    def forward(self, query_len: int, key_len: int) -> Tensor:
        """Return the bias `(num_heads, query_len, key_len)` of the last `query_len` positions."""
        buckets = _buckets(query_len, key_len, self.bidirectional, self.weight.device)
        return rows(self.weight, buckets.flatten()).T.view(-1, query_len, key_len)

    def by_distance(self, width: int) -> Tensor:
        """Return the bias `(2 width - 1, num_heads)` of each distance of a key from its query."""
        return rows(self.weight, _distance_buckets(width, self.bidirectional))


def bucket(distance: Tensor, *, bidirectional: bool) -> Tensor:
    """Return the bucket of each distance: exact up close, logarithmic up to `MAX_DISTANCE`.

    Args:
        distance: Key position minus query position, any shape, int64.
        bidirectional: Whether keys after the query have buckets of their own (half of them).
            Otherwise they share bucket 0 with the query's own position.

    Returns:
        Bucket indices in [0, 32), shaped like `distance`.
    """
    if bidirectional:
        num_buckets = NUM_BUCKETS // 2
        offset = (distance > 0).long() * num_buckets
        distance = distance.abs()
    else:
        num_buckets = NUM_BUCKETS
        offset = torch.zeros_like(distance)
        distance = (-distance).clamp(min=0)
    max_exact = num_buckets // 2
    scale = (num_buckets - max_exact) / math.log(MAX_DISTANCE / max_exact)
    far = max_exact + (torch.log(distance.clamp(min=1).float() / max_exact) * scale).long()
    return offset + torch.where(distance < max_exact, distance, far.clamp(max=num_buckets - 1))


@lru_cache(maxsize=512)
def _buckets(query_len: int, key_len: int, bidirectional: bool, device: torch.device) -> Tensor:
    # What a first call in inference mode makes must serve later calls that are differentiated.
    with torch.inference_mode(False):
        queries = torch.arange(key_len - query_len, key_len)[:, None]
        keys = torch.arange(key_len)[None, :]
        return bucket(keys - queries, bidirectional=bidirectional).to(device)


@lru_cache(maxsize=512)
def _distance_buckets(width: int, bidirectional: bool) -> Tensor:
    with torch.inference_mode(False):
        return bucket(torch.arange(1 - width, width), bidirectional=bidirectional)


def sinusoids(positions: Tensor, config: ModelConfig) -> Tensor:
    """Return the sinusoids `(num_tokens, d_model)` of `positions (num_tokens,)`, which count from 0.

    The first half of a row holds sin(position · rate_i), the second the cosines. With d = d_model,

    - `sinusoidal`: rate_i = 10000^(-i / (d/2)), as in Vaswani et al. 2017, section 3.5, in another order;
    - `sinusoidal-fairseq`: rate_i = 10000^(-i / (d/2 - 1)), and positions count from 1, one above padding's
      id (fairseq's `SinusoidalPositionalEmbedding`).
    """
    is_fairseq = config.positions == "sinusoidal-fairseq"
    longest = int(positions.max()) + 1 if len(positions) else 1
    length = -(-longest // TABLE_STEP) * TABLE_STEP
    return _sinusoid_table(length, config.d_model, is_fairseq, positions.device)[positions]


@lru_cache(maxsize=64)
def _sinusoid_table(length: int, d_model: int, is_fairseq: bool, device: torch.device) -> Tensor:
    with torch.inference_mode(False):
        return _sinusoids_at(torch.arange(length), d_model, is_fairseq).to(device)


def _sinusoids_at(positions: Tensor, d_model: int, is_fairseq: bool) -> Tensor:
    half = d_model // 2
    # A width of 2 has one rate, which is 1.
    slope = -math.log(10_000) / (max(1, half - 1) if is_fairseq else half)
    rates = torch.exp(torch.arange(half, device=positions.device) * slope)
    angles = (positions + 1 if is_fairseq else positions)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def padding_bias(padding_mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the bias `(batch, 1, 1, key_len)` that hides padding.

    Args:
        padding_mask: `(batch, key_len)` bool, True at padding.
        dtype: The bias's.
    """
    return torch.zeros_like(padding_mask, dtype=dtype).masked_fill_(padding_mask, HIDDEN)[:, None, None, :]


def causal_bias(query_len: int, key_len: int, like: Tensor) -> Tensor:
    """Return the bias `(query_len, key_len)` with which each of the last positions sees none after it."""
    return like.new_full((query_len, key_len), HIDDEN).triu(key_len - query_len + 1)
