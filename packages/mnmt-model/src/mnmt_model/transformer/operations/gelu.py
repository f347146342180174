"""Gated GELU."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_model.transformer import native
from mnmt_model.transformer.operations.dropout import draw_seed, dropout, threshold
from mnmt_model.transformer.operations.eager import has_gradient
from mnmt_model.transformer.products import TORCH, Products, Shape

LINEAR = 2 * math.sqrt(2 / math.pi)
CUBIC = 0.044715 * LINEAR
"""GELU's tanh approximation is x σ(LINEAR x + CUBIC x³), since (1 + tanh u) / 2 = σ(2u)."""


def gated_gelu(both: Tensor, rate: float = 0.0, products: Products = TORCH) -> Tensor:
    """Return GELU(a) * b, `(rows, d_ff)`, of `both (rows, 2 d_ff)`, a's columns and then b's, with dropout.

    GELU is its tanh approximation (Hendrycks & Gimpel 2016). In C++ nothing but `both` is stored for the
    gradient.

    Args:
        both: a and b.
        rate: Dropout's.
        products: The ways of operations.
    """
    if not has_gradient(both):
        a, b = both.chunk(2, dim=-1)
        return dropout(F.gelu(a, approximate="tanh") * b, rate)
    y: Tensor
    if products.is_native("gated_gelu", both, inner=1, columns=both.size(1) // 2):
        seed = draw_seed() if rate else 0
        y = _NativeGatedGELU.apply(both, seed, threshold(rate))  # type: ignore[no-untyped-call]
        return y
    y = _GatedGELU.apply(both)  # type: ignore[no-untyped-call]
    return dropout(y, rate, products=products)


def gelu_work(shape: Shape) -> Callable[[Products], object]:
    """Return what computes a gated GELU of such a shape and its gradient."""
    both = torch.randn(shape.rows, 2 * shape.columns, dtype=getattr(torch, shape.dtype)).requires_grad_()
    gradient = torch.ones(shape.rows, shape.columns, dtype=both.dtype)
    return lambda products: torch.autograd.grad(gated_gelu(both, products=products), both, gradient)


class _NativeGatedGELU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, both: Tensor, seed: int, least: int) -> Tensor:
        both = both.contiguous()
        ctx.save_for_backward(both)
        ctx.seed, ctx.least = seed, least
        rows, columns = both.shape
        y = both.new_empty(rows, columns // 2)
        native.run("gated_gelu", both, y, rows, columns // 2, seed, least)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (both,) = ctx.saved_tensors
        gradient, grad_both = gradients[0].contiguous(), torch.empty_like(both)
        native.run("gated_gelu_gradient", gradient, both, grad_both, *gradient.shape, ctx.seed, ctx.least)
        return grad_both, None, None


class _GatedGELU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, both: Tensor) -> Tensor:
        a, b = both.chunk(2, dim=1)
        sigmoid = (a * a).mul_(CUBIC).add_(LINEAR).mul_(a).sigmoid_()
        ctx.save_for_backward(both, sigmoid)
        return (a * b).mul_(sigmoid)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        both, sigmoid = ctx.saved_tensors
        a, b = both.chunk(2, dim=1)
        grad_both = torch.empty_like(both)
        grad_a, grad_b = grad_both.chunk(2, dim=1)
        grad = gradients[0] * sigmoid
        torch.mul(grad, a, out=grad_b)
        # σ + x σ (1 - σ) (LINEAR + 3 CUBIC x²), of which a factor σ is in `grad`.
        slope = (a * a).mul_(3 * CUBIC).add_(LINEAR).mul_(a)
        slope.addcmul_(slope, sigmoid, value=-1).add_(1).mul_(b)
        torch.mul(grad, slope, out=grad_a)
        return grad_both
