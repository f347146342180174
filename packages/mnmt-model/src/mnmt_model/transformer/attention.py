"""Multi-head attention; a pattern defines which tokens attend to which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F  # noqa: N812 - the customary name

from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.modules import Dropout, Linear, dropout, dropout_mask, has_written_gradient

SHORT = 16
"""Number of keys below which torch's softmax does not use vector instructions."""


@dataclass(frozen=True, kw_only=True, eq=False)
class KeysValues:
    """Keys and values `(rows, num_heads, len, head_dim)` of an attention."""

    keys: Tensor
    values: Tensor

    def select(self, rows: Tensor) -> KeysValues:
        """Return the keys and values of the given rows, in their order."""
        return KeysValues(keys=self.keys.index_select(0, rows), values=self.values.index_select(0, rows))

    def contiguous(self) -> KeysValues:
        """Return the same keys and values in contiguous memory, to avoid copies in products."""
        return KeysValues(keys=self.keys.contiguous(), values=self.values.contiguous())


class Pattern(Protocol):
    """Defines which tokens attend to which: pads states into tables, attends, and returns a state a query."""

    def __call__(self, attention: Attention, x: Tensor) -> Tensor:
        """Return attended values `(num_queries, d_attention)`, given states `x (num_tokens, d_model)`."""
        ...


class Attention(nn.Module):
    """o(softmax(q kᵀ + bias) v) in `num_heads` heads; a pattern defines which tokens are compared."""

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
        if not table.is_cpu:
            return self.heads_in_place(table, number)
        heads = table.view(*table.shape[:2], number, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        # One copy here, or one of each tensor where it is multiplied.
        return heads.contiguous().unbind()

    def heads_in_place(self, table: Tensor, number: int) -> tuple[Tensor, ...]:
        """Return the same as `split_heads`, as views of the table: a GPU's attention reads heads there."""
        return tuple(self.heads(outputs) for outputs in table.chunk(number, dim=2))

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
        """Return attended values `(batch, query_len, d_attention)`.

        Args:
            queries: `(batch, num_heads, query_len, head_dim)`.
            keys: `(batch, num_heads, key_len, head_dim)`.
            values: Shaped like `keys`.
            bias: Added to the scores `(batch, num_heads, query_len, key_len)`; its first two sizes may be 1.
        """
        rate = self.dropout.training_rate
        if queries.is_cpu:
            attended = softmax_attention(queries, keys, values, bias, scale=self.scale, rate=rate)
        else:
            attended = F.scaled_dot_product_attention(
                queries, keys, values, attn_mask=bias, dropout_p=rate, scale=self.scale
            )
        return attended.transpose(1, 2).flatten(2)


def softmax_attention(
    queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor, *, scale: float, rate: float = 0.0
) -> Tensor:
    """Return dropout(softmax(scale q kᵀ + bias)) v, `(batch, num_heads, query_len, head_dim)`.

    Args:
        queries: `(batch, num_heads, query_len, head_dim)`.
        keys: `(batch, num_heads, key_len, head_dim)`.
        values: Shaped like `keys`.
        bias: Added to the scores `(batch, num_heads, query_len, key_len)`; its first three sizes may be 1.
        scale: Factor of q kᵀ.
        rate: Rate of dropout.
    """
    if has_written_gradient(queries):
        attended: Tensor = _Attention.apply(  # type: ignore[no-untyped-call]
            queries, keys, values, bias, scale, rate
        )
        return attended
    batch, heads, query_len, key_len = *queries.shape[:3], keys.size(2)
    scores = torch.baddbmm(
        bias.expand(batch, heads, query_len, key_len).flatten(0, 1),
        queries.flatten(0, 1),
        keys.flatten(0, 1).transpose(1, 2),
        alpha=scale,
    )
    weights = scores.softmax(-1, dtype=torch.float32).to(values.dtype)
    weights = dropout(weights, rate)
    return torch.bmm(weights, values.flatten(0, 1)).view(batch, heads, query_len, -1)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        bias: Tensor,
        scale: float,
        rate: float,
    ) -> Tensor:
        q, k, v = (x.flatten(0, 1) for x in (queries, keys, values))
        q = q if scale == 1 else q * scale
        scores = torch.bmm(q, k.transpose(1, 2))
        scores.view(*queries.shape[:3], -1).add_(bias)
        weights = _softmax_(scores)
        mask = dropout_mask(weights, rate) if rate else None
        ctx.save_for_backward(q, k, v, weights, mask)
        ctx.shape, ctx.bias_shape, ctx.scale = queries.shape, bias.shape, scale
        return torch.bmm(weights if mask is None else weights * mask, v).view(queries.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, weights, mask = ctx.saved_tensors
        grad = gradients[0].flatten(0, 1)
        grad_v = torch.bmm((weights if mask is None else weights * mask).transpose(1, 2), grad)
        grad_weights = torch.bmm(grad, v.transpose(1, 2))
        if mask is not None:
            grad_weights.mul_(mask)
        grad_scores = _softmax_gradient(grad_weights, weights)
        grad_q = torch.bmm(grad_scores, k)
        grad_k = torch.bmm(grad_scores.transpose(1, 2), q)
        batch, heads, query_len, _ = ctx.shape
        grad_bias = None
        if ctx.needs_input_grad[3]:
            grad_bias = grad_scores.view(batch, heads, query_len, -1).sum_to_size(ctx.bias_shape)
        grad_q, grad_k, grad_v = (x.view(batch, heads, *x.shape[1:]) for x in (grad_q, grad_k, grad_v))
        return grad_q if ctx.scale == 1 else grad_q.mul_(ctx.scale), grad_k, grad_v, grad_bias, None, None


def _softmax_(scores: Tensor) -> Tensor:
    """Return the softmax over the last dimension; overwrites the scores."""
    if scores.size(-1) >= SHORT:
        return torch.softmax(scores, -1, out=scores)
    scores.sub_(scores.amax(-1, keepdim=True)).exp_()
    return scores.div_(scores.sum(-1, keepdim=True))


def _softmax_gradient(gradient: Tensor, weights: Tensor) -> Tensor:
    """Return the gradient of the scores, w (g - Σ g w); may overwrite the gradient of the weights."""
    if weights.size(-1) >= SHORT:
        return torch._softmax_backward_data(gradient, weights, -1, weights.dtype)
    mean = torch.linalg.vecdot(gradient, weights).unsqueeze(-1)
    return gradient.sub_(mean).mul_(weights)
