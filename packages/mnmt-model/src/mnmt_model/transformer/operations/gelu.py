"""Gated GELU."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_model.transformer.operations.eager import has_gradient

LINEAR = 2 * math.sqrt(2 / math.pi)
CUBIC = 0.044715 * LINEAR
"""GELU's tanh approximation is x σ(LINEAR x + CUBIC x³), since (1 + tanh u) / 2 = σ(2u)."""


def gated_gelu(both: Tensor) -> Tensor:
    """Return GELU(a) * b, `(rows, d_ff)`, of `both (rows, 2 d_ff)`, a's columns and then b's.

    GELU is its tanh approximation (Hendrycks & Gimpel 2016).
    """
    if not has_gradient(both):
        a, b = both.chunk(2, dim=-1)
        return F.gelu(a, approximate="tanh") * b
    y: Tensor = _GatedGELU.apply(both)  # type: ignore[no-untyped-call]
    return y


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
