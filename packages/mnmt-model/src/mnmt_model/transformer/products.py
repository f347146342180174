"""Matrix products and what computes them: oneDNN, or what torch takes."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor

ONEDNN_WEIGHTS = 2**13
"""Number of weights in a matrix below which calling oneDNN costs more than it gains."""


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return x Wᵀ (+ bias), `(rows, columns)`, of `x (rows, inner)` and `weight (columns, inner)`."""
    if not _is_faster_in_onednn(x, weight):
        return torch.nn.functional.linear(x, weight, bias)
    if torch.is_grad_enabled():
        y: Tensor = _Linear.apply(x, weight)  # type: ignore[no-untyped-call]
    else:
        # A Function costs more than a small product.
        y = product(x, weight)
    return y if bias is None else y + bias


def batched_linear(x: Tensor, weights: Tensor) -> Tensor:
    """Return the products x_i W_i, `(number, rows, columns)`.

    Args:
        x: `(number, rows, inner)`.
        weights: `(number, inner, columns)`.
    """
    if len(x) and _is_faster_in_onednn(x[0], weights[0]):
        return torch.stack([linear(rows, weight.T) for rows, weight in zip(x, weights, strict=True)])
    return torch.bmm(x, weights)


def product(a: Tensor, b: Tensor) -> Tensor:
    """Return a bᵀ, `(rows, columns)`, of `a (rows, inner)` and `b (columns, inner)`, without gradient.

    Torch leaves float32 products on a CPU to MKL, which on AMD's processors uses half the width of their
    vector units; oneDNN, which torch carries for other types, uses all of it at the same precision.
    """
    if _is_faster_in_onednn(a, b):
        result: Tensor = torch.ops.mkldnn._linear_pointwise(a, b, None, "none", [], "")
        return result
    return a @ b.T


def _is_faster_in_onednn(a: Tensor, b: Tensor) -> bool:
    return (
        a.device.type == "cpu"
        and a.dtype == torch.float32
        and a.dim() == 2
        and b.numel() >= ONEDNN_WEIGHTS
        and a.size(0) > 0
        and not torch.compiler.is_compiling()
        and _has_onednn()
    )


@cache
def _has_onednn() -> bool:
    return (
        torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        and torch.backends.cpu.get_cpu_capability() == "AVX512"
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return product(x, weight)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        grad_x = product(gradients[0], weight.T) if ctx.needs_input_grad[0] else None
        grad_weight = product(gradients[0].T, x.T) if ctx.needs_input_grad[1] else None
        return grad_x, grad_weight
