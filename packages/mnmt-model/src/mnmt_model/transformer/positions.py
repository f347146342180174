"""Positions and masks: relative position biases, sinusoids, and biases that mask keys."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor, nn

from mnmt_model.transformer.model_config import NUM_BUCKETS, ModelConfig
from mnmt_model.transformer.modules import table_rows

HIDDEN = -1e9
"""The bias of a masked key; finite, so that a query without keys yields no NaN."""

MAX_DISTANCE = 128
"""Distance from which all positions share the last bucket."""

TABLE_STEP = 256
"""Tables of sinusoids have multiples of this number of positions."""


class RelativePositionBias(nn.Module):
    """A learned scalar for each bucket of distances and head (T5), shared by all layers of a stack."""

    def __init__(self, num_heads: int, *, bidirectional: bool) -> None:
        super().__init__()
        self.bidirectional = bidirectional
        self.weight = nn.Parameter(torch.empty(NUM_BUCKETS, num_heads))

    def forward(self, query_len: int, key_len: int) -> Tensor:
        """Return the bias `(num_heads, query_len, key_len)` of the last `query_len` positions."""
        # A compiler cannot trace caches.
        make = _make_buckets if torch.compiler.is_compiling() else _buckets
        buckets = make(query_len, key_len, self.bidirectional, self.weight.device)
        return table_rows(self.weight, buckets.flatten()).T.view(-1, query_len, key_len)


def bucket(distance: Tensor, *, bidirectional: bool) -> Tensor:
    """Return the bucket of each distance: exact up close, logarithmic up to `MAX_DISTANCE`.

    Args:
        distance: Key position minus query position, any shape, int64.
        bidirectional: Whether keys after the query have separate buckets (half of them).
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


def _make_buckets(query_len: int, key_len: int, bidirectional: bool, device: torch.device) -> Tensor:
    queries = torch.arange(key_len - query_len, key_len, device=device)[:, None]
    keys = torch.arange(key_len, device=device)[None, :]
    return bucket(keys - queries, bidirectional=bidirectional)


@lru_cache(maxsize=512)
def _buckets(query_len: int, key_len: int, bidirectional: bool, device: torch.device) -> Tensor:
    # A cached tensor from a call in inference mode must also serve differentiated calls.
    with torch.inference_mode(False):
        return _make_buckets(query_len, key_len, bidirectional, torch.device("cpu")).to(device)


def sinusoids(positions: Tensor, config: ModelConfig) -> Tensor:
    """Return the sinusoids `(num_tokens, d_model)` of `positions (num_tokens,)`, which count from 0.

    The first half of a row holds sin(position · rate_i), the second the cosines. With d = d_model,

    - `sinusoidal`: rate_i = 10000^(-i / (d/2)), as in Vaswani et al. 2017, section 3.5, in another order;
    - `sinusoidal-fairseq`: rate_i = 10000^(-i / (d/2 - 1)), and positions count from 1, one above padding's
      id (fairseq's `SinusoidalPositionalEmbedding`).
    """
    is_fairseq = config.positions == "sinusoidal-fairseq"
    if torch.compiler.is_compiling() or not positions.is_cpu:  # the host would wait for the longest
        return _sinusoids_at(positions, config.d_model, is_fairseq)
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
    """Return the bias `(batch, 1, 1, key_len)` that masks padding.

    Args:
        padding_mask: `(batch, key_len)` bool, True at padding.
        dtype: Type of the bias.
    """
    return torch.zeros_like(padding_mask, dtype=dtype).masked_fill_(padding_mask, HIDDEN)[:, None, None, :]


def causal_bias(query_len: int, key_len: int, like: Tensor) -> Tensor:
    """Return the bias `(query_len, key_len)` that masks later keys for each of the last positions."""
    return like.new_full((query_len, key_len), HIDDEN).triu(key_len - query_len + 1)
