"""Linear maps, norms and dropout: the smallest modules of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F  # noqa: N812 - the customary name

from mnmt_model.transformer.model_config import ModelConfig

LEVELS = 2**16
"""Levels of the random 16-bit numbers of dropout masks; rates are rounded to 1 / 65,536."""


def has_written_gradient(x: Tensor) -> bool:
    """Return whether operations on `x` use a hand-written gradient, in an autograd Function.

    In training on a CPU this halves their time. They cannot be differentiated twice: torch raises an error.
    """
    return (
        torch.is_grad_enabled()
        and x.is_cpu
        and x.dtype in (torch.float32, torch.float64)
        and not torch.compiler.is_compiling()
    )


def table_rows(table: Tensor, indices: Tensor) -> Tensor:
    """Return the rows `(n, columns)` of `table` at `indices (n,)`, like an embedding.

    On a CPU the gradient of a selection takes half the time of an embedding's.
    """
    return table.index_select(0, indices) if table.is_cpu else F.embedding(indices, table)


class Linear(nn.Linear):
    """x Wᵀ (+ b), in the precision of x; the weights are float32."""

    def __init__(self, in_features: int, out_features: int, *, bias: bool) -> None:
        super().__init__(in_features, out_features, bias=bias)
        self.has_bias = bias

    def forward(self, x: Tensor) -> Tensor:
        """Map `(…, in_features)` to `(…, out_features)`."""
        bias = self.bias.to(x.dtype) if self.has_bias else None
        return F.linear(x, self.weight.to(x.dtype), bias)


def map_jointly(x: Tensor, maps: Sequence[Linear]) -> Tensor:
    """Map `x (rows, in_features)` by several maps in one product, with outputs side by side."""
    weight = torch.cat([each.weight for each in maps]).to(x.dtype)
    bias = torch.cat([each.bias for each in maps]).to(x.dtype) if maps[0].has_bias else None
    return F.linear(x, weight, bias)


class RMSNorm(nn.Module):
    """x / sqrt(mean x² + ε) · weight, over the last dimension."""

    def __init__(self, d_model: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        """Map `(num_tokens, d_model)` to the same shape."""
        weight = self.weight.to(x.dtype)
        if not has_written_gradient(x):
            return F.rms_norm(x, weight.shape, weight, self.epsilon)
        y: Tensor = _RMSNorm.apply(x, weight, self.epsilon)  # type: ignore[no-untyped-call]
        return y


class _RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        scale = torch.linalg.vector_norm(x, dim=1, keepdim=True).square_()
        scale.div_(x.size(1)).add_(epsilon).rsqrt_()
        ctx.save_for_backward(x, weight, scale)
        y: Tensor = (x * scale).mul_(weight)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        # With n = x · scale: ∂x = scale (g w - n mean(g w n)), and ∂w = Σ g n over the rows.
        x, weight, scale = ctx.saved_tensors
        normal = x * scale
        products = gradients[0] * normal
        grad_x = gradients[0] * weight
        means = products.mv(weight).div_(-x.size(1)).unsqueeze(1)
        return grad_x.addcmul_(normal, means).mul_(scale), products.sum(0), None


class LayerNorm(nn.Module):
    """(x - mean x) / sqrt(var x + ε) · weight + bias, over the last dimension."""

    def __init__(self, d_model: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        """Map `(num_tokens, d_model)` to the same shape."""
        weight, bias = self.weight.to(x.dtype), self.bias.to(x.dtype)
        return F.layer_norm(x, self.weight.shape, weight, bias, self.epsilon)


def make_norm(config: ModelConfig) -> RMSNorm | LayerNorm:
    """Return the norm of `config`."""
    kind = RMSNorm if config.norm == "rms" else LayerNorm
    return kind(config.d_model, config.norm_epsilon)


class Dropout(nn.Module):
    """Zeroes elements at a rate and scales the others, in training."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    @property
    def training_rate(self) -> float:
        """The rate in training, 0 otherwise."""
        return self.rate if self.training else 0.0

    def forward(self, x: Tensor) -> Tensor:
        """Apply dropout to `x`."""
        return dropout(x, self.training_rate)

    def add(self, x: Tensor, residual: Tensor) -> Tensor:
        """Return `residual` plus `x` after dropout."""
        if self.training_rate and x.is_cpu:
            return torch.addcmul(residual, x, dropout_mask(x, self.rate))
        return residual + dropout(x, self.training_rate)


def dropout(x: Tensor, rate: float) -> Tensor:
    """Return `x` with elements zeroed at a rate and the others scaled."""
    if not rate:
        return x
    return x * dropout_mask(x, rate) if x.is_cpu else F.dropout(x, rate)


def dropout_mask(x: Tensor, rate: float) -> Tensor:
    """Draw the factors of `x`, on a CPU, in its shape and precision.

    Torch draws a CPU mask from a Mersenne Twister, one number for each element, which takes longer than the
    matrix product before it. Here torch seeds another generator, each number of which serves four elements.
    So a mask is a function of torch's generator, and activation checkpointing, which restores that generator,
    draws the same mask again.
    """
    # Torch's compiler cannot trace NumPy, so a custom operator wraps it.
    mask: Tensor = (_compiled_mask if torch.compiler.is_compiling() else _draw_mask)(x.detach(), rate)
    return mask


def _draw_mask(x: Tensor, rate: float) -> Tensor:
    # 0 would leave no elements, and `LEVELS` does not fit into 16 bits.
    least = min(max(round((1 - rate) * LEVELS), 1), LEVELS - 1)
    size, seed = x.numel(), int(torch.randint(2**62, ()))
    words = np.random.SFC64(seed).random_raw(-(-size // 4))
    # NumPy compares 16-bit numbers, and converts bools, faster than torch.
    factors = np.multiply(words.view(np.uint16)[:size] < least, np.float32(LEVELS / least))
    return torch.from_numpy(factors).view(x.shape).to(x.dtype)


_compiled_mask = torch.library.custom_op(
    "mnmt_model::dropout_mask", _draw_mask, mutates_args=(), tags=(torch.Tag.nondeterministic_seeded,)
)
_compiled_mask.register_fake(lambda x, rate: torch.empty_like(x, memory_format=torch.contiguous_format))
