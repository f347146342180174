"""Additive attention masks: 0 where a query sees a key, `HIDDEN` where not."""

from __future__ import annotations

import torch
from torch import Tensor

HIDDEN = -1e9
"""A score that leaves no weight; finite, so that a query that sees nothing yields no NaN."""


def padding_mask(hidden: Tensor, dtype: torch.dtype) -> Tensor:
    """`(batch, 1, 1, key_len)` of `hidden (batch, key_len)`, True at padding."""
    return torch.zeros_like(hidden, dtype=dtype).masked_fill_(hidden, HIDDEN)[:, None, None, :]


def causal_mask(query_len: int, key_len: int, like: Tensor) -> Tensor:
    """`(query_len, key_len)`: each of the last `query_len` positions sees itself and those before it."""
    return like.new_full((query_len, key_len), HIDDEN).triu(key_len - query_len + 1)
