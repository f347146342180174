"""Dropout, with or without the sum with a residual."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_model.transformer import native
from mnmt_model.transformer.operations.eager import has_gradient
from mnmt_model.transformer.products import TORCH, Products, Shape

LEVELS = 2**16
"""A dropout mask compares 16 random bits an element with the rate, which is thus rounded to 1 / 65,536."""

NATIVE_LEVELS = 2**32
"""In C++ it compares 32."""


def dropout(x: Tensor, rate: float, residual: Tensor | None = None, products: Products = TORCH) -> Tensor:
    """Return `x` with elements zeroed at a rate and the others scaled, and `residual` added to it.

    In C++ the mask is a function of a seed that torch's generator draws, and is drawn again for the gradient.

    Args:
        x: Any shape.
        rate: The rate; at 0 nothing is zeroed.
        residual: The same shape.
        products: The ways of operations.
    """
    if rate == 0:
        return x if residual is None else residual + x
    if x.is_cuda or torch.compiler.is_compiling():
        x = F.dropout(x, rate)
        return x if residual is None else residual + x
    columns = x.size(-1)
    if has_gradient(x) and products.is_native("dropout", x, inner=1, columns=columns):
        y: Tensor = _NativeDropout.apply(x, residual, draw_seed(), threshold(rate))  # type: ignore[no-untyped-call]
        return y
    mask = dropout_mask(x.shape, rate, x)
    return x * mask if residual is None else torch.addcmul(residual, x, mask)


def dropout_mask(shape: Sequence[int], rate: float, like: Tensor, *, seed: int | None = None) -> Tensor:
    """Draw the factors of a tensor of a shape, in the precision of `like`, or make them of a seed.

    Torch draws a CPU mask from one Mersenne Twister, a number for each element, which takes longer than the
    matrix product before it. Here torch seeds another generator, which fills the mask, four elements a
    number. So a mask is a function of torch's generator. Activation checkpointing, which winds that generator
    back, draws the same mask again.
    """
    if seed is None and (like.is_cuda or torch.compiler.is_compiling()):
        return F.dropout(like.new_ones(shape), rate)
    least = _threshold(rate, LEVELS)
    # NumPy compares 16-bit numbers, and makes numbers of bools, faster than torch.
    bits = _mask(math.prod(shape), least, draw_seed() if seed is None else seed)
    factors = np.multiply(bits, np.float32(LEVELS / least))
    return torch.from_numpy(factors).view(shape).to(like.dtype)


def draw_seed() -> int:
    """Draw the seed of a mask from torch's generator."""
    return int(torch.randint(2**62, ()))


def threshold(rate: float) -> int:
    """Return below which of 2³² numbers an element remains in C++, where 0 stands for no dropout."""
    return _threshold(rate, NATIVE_LEVELS) if rate else 0


def dropout_work(shape: Shape) -> Callable[[Products], object]:
    """Return what computes dropout of such a table with a residual, and its gradients."""
    sizes = (2, shape.rows, shape.columns)
    inputs = [each.requires_grad_() for each in torch.zeros(sizes, dtype=getattr(torch, shape.dtype))]
    gradient = torch.zeros_like(inputs[0])
    return lambda products: torch.autograd.grad(
        dropout(inputs[0], 0.1, inputs[1], products), inputs, gradient
    )


class _NativeDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, residual: Tensor | None, seed: int, least: int) -> Tensor:
        ctx.seed, ctx.least = seed, least
        return _native(x, residual, seed, least)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        grad_x = _native(gradients[0], None, ctx.seed, ctx.least)
        return grad_x, gradients[0] if ctx.needs_input_grad[1] else None, None, None


def _native(x: Tensor, residual: Tensor | None, seed: int, least: int) -> Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    native.run(
        "dropout", x, residual if residual is None else residual.contiguous(), y, x.numel(), seed, least
    )
    return y


def _threshold(rate: float, levels: int) -> int:
    # At 0 nothing would be left to scale, and `levels` itself does not fit the bits.
    return min(max(round((1 - rate) * levels), 1), levels - 1)


def _mask(size: int, least: int, seed: int) -> NDArray[np.bool_]:
    """Return `(size,)`, True with probability `least` / 65,536."""
    words = np.random.SFC64(seed).random_raw(-(-size // 4))
    mask: NDArray[np.bool_] = words.view(np.uint16)[:size] < least
    return mask
