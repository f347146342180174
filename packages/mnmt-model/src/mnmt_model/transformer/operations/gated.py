"""Gated units: GELU(a) * b and SiLU(a) * b."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_model.transformer import native
from mnmt_model.transformer.operations.dropout import draw_seed, dropout, threshold
from mnmt_model.transformer.operations.eager import has_gradient
from mnmt_model.transformer.products import TORCH, Products, Shape

Unit = Literal["gelu", "silu"]


class Polynomial(NamedTuple):
    """A gate is a σ(linear a + cubic a³)."""

    linear: float
    cubic: float


LINEAR = 2 * math.sqrt(2 / math.pi)

POLYNOMIALS = {"gelu": Polynomial(LINEAR, 0.044715 * LINEAR), "silu": Polynomial(1.0, 0.0)}
"""GELU's is its tanh approximation (Hendrycks & Gimpel 2016), since (1 + tanh u) / 2 = σ(2u)."""


def gated(both: Tensor, unit: Unit, rate: float = 0.0, products: Products = TORCH) -> Tensor:
    """Return f(a) * b, `(rows, d_ff)`, of `both (rows, 2 d_ff)`, a's columns and then b's, with dropout.

    Nothing but `both` is stored for the gradient.

    Args:
        both: a and b.
        unit: f: GELU, in its tanh approximation, or SiLU.
        rate: Dropout's.
        products: The ways of operations.
    """
    if not has_gradient(both):
        return dropout(plain_gated(both, unit), rate)
    y: Tensor
    if products.is_native("gated_gelu", both, inner=1, columns=both.size(1) // 2):
        seed = draw_seed() if rate else 0
        y = _NativeGated.apply(both, unit, seed, threshold(rate))  # type: ignore[no-untyped-call]
        return y
    y = _Gated.apply(both, unit)  # type: ignore[no-untyped-call]
    return dropout(y, rate, products=products)


def plain_gated(both: Tensor, unit: Unit) -> Tensor:
    """Return f(a) * b by torch's operators."""
    a, b = both.chunk(2, dim=-1)
    return (F.gelu(a, approximate="tanh") if unit == "gelu" else F.silu(a)) * b


def gated_gradient(gradient: Tensor, both: Tensor, unit: Unit) -> tuple[Tensor, Tensor]:
    """Return f(a) * b again, and the gradient of `both`."""
    linear, cubic = POLYNOMIALS[unit]
    a, b = both.chunk(2, dim=1)
    square = a * a
    sigmoid = (square * cubic).add_(linear).mul_(a).sigmoid_()
    gate = a * sigmoid
    grad_both = torch.empty_like(both)
    grad_a, grad_b = grad_both.chunk(2, dim=1)
    torch.mul(gradient, gate, out=grad_b)
    # σ + a σ (1 - σ) (linear + 3 cubic a²)
    slope = square.mul_(3 * cubic).add_(linear).mul_(gate)
    slope.addcmul_(slope, sigmoid, value=-1).add_(sigmoid).mul_(b)
    torch.mul(gradient, slope, out=grad_a)
    return gate.mul_(b), grad_both


def gelu_work(shape: Shape) -> Callable[[Products], object]:
    """Return what computes a gated GELU of such a shape and its gradient; SiLU takes the same way."""
    both = torch.randn(shape.rows, 2 * shape.columns, dtype=getattr(torch, shape.dtype)).requires_grad_()
    gradient = torch.ones(shape.rows, shape.columns, dtype=both.dtype)
    return lambda products: torch.autograd.grad(gated(both, "gelu", products=products), both, gradient)


class _NativeGated(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, both: Tensor, unit: Unit, seed: int, least: int) -> Tensor:
        both = both.contiguous()
        ctx.save_for_backward(both)
        ctx.unit, ctx.seed, ctx.least = unit, seed, least
        rows, columns = both.shape
        y = both.new_empty(rows, columns // 2)
        native.run(f"gated_{unit}", both, y, rows, columns // 2, seed, least)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (both,) = ctx.saved_tensors
        gradient, grad_both = gradients[0].contiguous(), torch.empty_like(both)
        options = (*gradient.shape, ctx.seed, ctx.least)
        native.run(f"gated_gradient_{ctx.unit}", gradient, both, None, grad_both, *options)
        return grad_both, None, None, None


class _Gated(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, both: Tensor, unit: Unit) -> Tensor:
        ctx.save_for_backward(both)
        ctx.unit = unit
        return plain_gated(both, unit)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (both,) = ctx.saved_tensors
        return gated_gradient(gradients[0], both, ctx.unit)[1], None
