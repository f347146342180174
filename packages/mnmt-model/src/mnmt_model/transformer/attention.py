"""Multi-head attention."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_model.transformer.dropout import Dropout
from mnmt_model.transformer.linear import Linear
from mnmt_model.transformer.model_config import ModelConfig


class Pattern(Protocol):
    """Who sees whom: lays projected states into tables, attends, and gives back one state a query."""

    def __call__(self, attention: Attention, x: Tensor) -> Tensor:
        """Attended values `(num_queries, d_attention)`, of the layer's states `x (num_tokens, d_model)`."""
        ...


class Attention(nn.Module):
    """o(softmax(q kᵀ + bias) v) in `num_heads` heads; a pattern says which tokens are compared."""

    def __init__(self, config: ModelConfig, dropout: float) -> None:
        super().__init__()
        self.num_heads = config.num_heads
        self.scale = config.d_head**-0.5 if config.scaled_attention else 1.0
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
        """`(batch, num_heads, len, d_head)` of a table `(batch, len, d_attention)`."""
        return table.view(*table.shape[:2], self.num_heads, -1).transpose(1, 2)

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
        """Attended values `(batch, query_len, d_attention)`.

        Args:
            queries: `(batch, num_heads, query_len, d_head)`.
            keys: `(batch, num_heads, key_len, d_head)`.
            values: Like `keys`.
            bias: Added to the scores `(batch, num_heads, query_len, key_len)`; may be 1 in the first two.
        """
        if queries.is_cuda:
            rate = self.dropout.rate if self.training else 0.0
            attended = F.scaled_dot_product_attention(
                queries, keys, values, attn_mask=bias, dropout_p=rate, scale=self.scale
            )
        else:
            attended = self._attend_plainly(queries, keys, values, bias)
        return attended.transpose(1, 2).flatten(2)

    def _attend_plainly(self, queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
        # On a CPU, torch's fused attention takes no bias that learns, and its fallback is slower than this.
        batch, heads, query_len, key_len = *queries.shape[:3], keys.size(2)
        scores = torch.baddbmm(
            bias.expand(batch, heads, query_len, key_len).flatten(0, 1),
            queries.flatten(0, 1),
            keys.flatten(0, 1).transpose(1, 2),
            alpha=self.scale,
        )
        weights = scores.softmax(-1, dtype=torch.float32).to(values.dtype)
        attended = torch.bmm(self.dropout(weights), values.flatten(0, 1))
        return attended.view(batch, heads, query_len, -1)
