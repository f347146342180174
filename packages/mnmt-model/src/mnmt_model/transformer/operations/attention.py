"""softmax(q kᵀ + bias) v."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mnmt_model.transformer.operations.eager import has_gradient

SHORT = 16
"""Numbers of keys below which torch's softmax, which takes 16 floats at a time, takes one at a time."""


def attention(
    queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor, *, scale: float, mask: Tensor | None
) -> Tensor:
    """Return the attended values `(batch, num_heads, query_len, head_dim)`.

    Args:
        queries: `(batch, num_heads, query_len, head_dim)`.
        keys: `(batch, num_heads, key_len, head_dim)`.
        values: Shaped like `keys`.
        bias: Is added to the scores `(batch, num_heads, query_len, key_len)`; its first three sizes may be 1.
        scale: The factor of q kᵀ.
        mask: Dropout's factors of the weights, `(batch * num_heads, query_len, key_len)`; by default all 1.
    """
    if has_gradient(queries):
        attended: Tensor = _Attention.apply(  # type: ignore[no-untyped-call]
            queries, keys, values, bias, scale, mask
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
    weights = weights if mask is None else weights * mask
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
        mask: Tensor | None,
    ) -> Tensor:
        q, k, v = (x.flatten(0, 1) for x in (queries, keys, values))
        q = q if scale == 1 else q * scale
        scores = torch.bmm(q, k.transpose(1, 2))
        scores.view(*queries.shape[:3], -1).add_(bias)
        weights = _softmax_(scores)
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
    """Return the softmax over the last dimension, written over the scores."""
    if scores.size(-1) >= SHORT:
        return torch.softmax(scores, -1, out=scores)
    scores.sub_(scores.amax(-1, keepdim=True)).exp_()
    return scores.div_(scores.sum(-1, keepdim=True))


def _softmax_gradient(gradient: Tensor, weights: Tensor) -> Tensor:
    """Return the gradient by the scores, which may be written over that by the weights."""
    if weights.size(-1) >= SHORT:
        return torch._softmax_backward_data(gradient, weights, -1, weights.dtype)
    mean = torch.linalg.vecdot(gradient, weights).unsqueeze(-1)
    return gradient.sub_(mean).mul_(weights)
