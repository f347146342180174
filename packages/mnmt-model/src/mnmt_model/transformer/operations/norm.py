"""RMSNorm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_model.transformer import native
from mnmt_model.transformer.operations.eager import has_gradient
from mnmt_model.transformer.products import TORCH, Products, Shape

ROWS = 64
"""Rows of a part, whose gradients of the weight are summed together, whichever thread computes it."""


def rms_norm(x: Tensor, weight: Tensor, epsilon: float, products: Products = TORCH) -> Tensor:
    """Return x / sqrt(mean x² + ε) · weight, over the last dimension.

    Args:
        x: `(rows, d_model)`.
        weight: `(d_model,)`.
        epsilon: ε.
        products: The ways of operations.
    """
    if x.dim() != 2 or not has_gradient(x):
        plain: Tensor = F.rms_norm(x, weight.shape, weight, epsilon)
        return plain
    columns = x.size(1)
    is_native = products.is_native("rms_norm", x, inner=columns, columns=columns)
    function = _NativeRMSNorm if is_native else _RMSNorm
    y: Tensor = function.apply(x, weight, epsilon)  # type: ignore[no-untyped-call]
    return y


def norm_work(shape: Shape) -> Callable[[Products], object]:
    """Return what computes an RMSNorm of such a shape and its gradients."""
    dtype, size = getattr(torch, shape.dtype), (shape.rows, shape.columns)
    gradient, x, weight = (torch.randn(each, dtype=dtype) for each in (size, size, shape.columns))
    inputs = (x.requires_grad_(), weight.requires_grad_())
    return lambda products: torch.autograd.grad(rms_norm(*inputs, 1e-6, products), inputs, gradient)


class _RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        scale = torch.linalg.vecdot(x, x).div_(x.size(1)).add_(epsilon).rsqrt_().unsqueeze(1)
        ctx.save_for_backward(x, weight, scale)
        y: Tensor = (x * scale).mul_(weight)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, scale = ctx.saved_tensors
        normal = x * scale
        products = gradients[0] * normal
        grad_x = gradients[0] * weight
        means = products.mv(weight).div_(-x.size(1)).unsqueeze(1)
        return grad_x.addcmul_(normal, means).mul_(scale), products.sum(0), None


class _NativeRMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        x = x.contiguous()
        y, scales = torch.empty_like(x), x.new_empty(len(x))
        native.run("rms_norm", x, weight, y, scales, ROWS, *x.shape, float(epsilon))
        ctx.save_for_backward(x, weight, scales)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, scales = ctx.saved_tensors
        grad_x, parts = torch.empty_like(x), x.new_empty(-(-len(x) // ROWS), x.size(1))
        gradient = gradients[0].contiguous()
        native.run("rms_norm_gradient", gradient, x, weight, scales, grad_x, parts, ROWS, *x.shape)
        return grad_x, parts.sum(0), None
