"""Where a token stands: T5's relative position bias, and sinusoids."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor, nn

from mnmt_model.transformer.model_config import NUM_BUCKETS

MAX_DISTANCE = 128
TABLE_STEP = 256
"""Tables of sinusoids are made for multiples of so many positions."""


def bucket(distance: Tensor, *, bidirectional: bool) -> Tensor:
    """Bucket of each key-minus-query distance: exact up close, logarithmic up to `MAX_DISTANCE`.

    Args:
        distance: Key position minus query position, any shape, int64.
        bidirectional: Whether keys after the query have buckets of their own (half of them);
            otherwise they share bucket 0 with the query's own position.

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


class RelativePositionBias(nn.Module):
    """One learned scalar a bucket and head, added to the attention scores and shared by a stack's layers."""

    def __init__(self, num_heads: int, *, bidirectional: bool) -> None:
        super().__init__()
        self.bidirectional = bidirectional
        self.weight = nn.Parameter(torch.empty(NUM_BUCKETS, num_heads))

    def forward(self, query_len: int, key_len: int) -> Tensor:
        """Bias `(num_heads, query_len, key_len)` of the last `query_len` among `key_len` positions."""
        buckets = _buckets(query_len, key_len, self.bidirectional, self.weight.device)
        return nn.functional.embedding(buckets, self.weight).permute(2, 0, 1)


def sinusoids(positions: Tensor, d_model: int) -> Tensor:
    """`(num_tokens, d_model)` of `positions (num_tokens,)` (Vaswani et al. 2017, section 3.5).

    The first half holds sin(position / 10000^(2i / d_model)), the second the cosines.
    """
    longest = int(positions.max()) + 1 if len(positions) else 1
    return _sinusoid_table(-(-longest // TABLE_STEP) * TABLE_STEP, d_model, positions.device)[positions]


@lru_cache(maxsize=64)
def _sinusoid_table(length: int, d_model: int, device: torch.device) -> Tensor:
    with torch.inference_mode(False):
        rates = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10_000) / d_model))
        angles = torch.arange(length)[:, None] * rates
        return torch.cat([angles.sin(), angles.cos()], dim=1).to(device)
