"""Linear maps, norms and dropout: the smallest modules of a model."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.operations import joint_linear, rms_norm
from mnmt_model.transformer.products import TORCH

EPSILON = 1e-6
"""The ε of every norm."""

LEVELS = 2**16
"""A dropout mask compares 16 random bits an element with the rate, which is thus rounded to 1 / 65,536."""


class Linear(nn.Linear):
    """x Wᵀ (+ b), in the precision of x; the weights are float32."""

    def __init__(self, in_features: int, out_features: int, *, bias: bool) -> None:
        super().__init__(in_features, out_features, bias=bias)
        self.has_bias = bias
        self.products = TORCH

    def forward(self, x: Tensor) -> Tensor:
        """Map `(…, in_features)` to `(…, out_features)`."""
        bias = self.bias.to(x.dtype) if self.has_bias else None
        return self.products.linear(x, self.weight.to(x.dtype), bias)


def map_jointly(x: Tensor, maps: Sequence[Linear]) -> Tensor:
    """Map `x (rows, in_features)` by several maps in one product: their outputs side by side."""
    y = joint_linear(x, [each.weight.to(x.dtype) for each in maps], maps[0].products)
    return y + torch.cat([each.bias for each in maps]).to(x.dtype) if maps[0].has_bias else y


class RMSNorm(nn.Module):
    """x / sqrt(mean x² + ε) · weight, over the last dimension."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Tensor) -> Tensor:
        """Map `(…, d_model)` to the same shape."""
        return rms_norm(x, self.weight.to(x.dtype), EPSILON)


class LayerNorm(nn.Module):
    """(x - mean x) / sqrt(var x + ε) · weight + bias, over the last dimension."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        """Map `(…, d_model)` to the same shape."""
        weight, bias = self.weight.to(x.dtype), self.bias.to(x.dtype)
        return F.layer_norm(x, self.weight.shape, weight, bias, EPSILON)


def make_norm(config: ModelConfig) -> nn.Module:
    """Return the norm that `config` names."""
    return RMSNorm(config.d_model) if config.norm == "rms" else LayerNorm(config.d_model)


class Dropout(nn.Module):
    """Zeroes elements at a rate and scales the others, in training.

    Torch draws a CPU mask from one Mersenne Twister, a number for each element, which takes longer than the
    matrix product before it. Here torch seeds another generator, which fills the mask, four elements a
    number. So a mask is a function of torch's generator. Activation checkpointing, which winds that generator
    back, draws the same mask again.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """Return what dropout leaves of `x`, and `residual` added to it: the same shape."""
        if x.is_cuda or torch.compiler.is_compiling():
            x = F.dropout(x, self.rate, self.training)
            return x if residual is None else residual + x
        mask = self.mask(x.shape, x)
        if residual is None:
            return x if mask is None else x * mask
        return residual + x if mask is None else torch.addcmul(residual, x, mask)

    def mask(self, shape: Sequence[int], like: Tensor) -> Tensor | None:
        """Draw the factors of a tensor of a shape, in the precision of `like`; None if they are all 1."""
        if not self.training or self.rate == 0:
            return None
        if like.is_cuda or torch.compiler.is_compiling():
            return F.dropout(like.new_ones(shape), self.rate)
        # At 0 nothing would be left to scale, and `LEVELS` does not fit the mask's int16.
        threshold = min(max(round((1 - self.rate) * LEVELS), 1), LEVELS - 1)
        # NumPy compares 16-bit numbers, and makes numbers of bools, faster than torch.
        factors = np.multiply(_mask(math.prod(shape), threshold), np.float32(LEVELS / threshold))
        return torch.from_numpy(factors).view(shape).to(like.dtype)


def _mask(size: int, threshold: int) -> NDArray[np.bool_]:
    """Return `(size,)`, True with probability `threshold` / 65,536."""
    seed = int(torch.randint(2**62, ()))
    words = np.random.SFC64(seed).random_raw(-(-size // 4))
    mask: NDArray[np.bool_] = words.view(np.uint16)[:size] < threshold
    return mask
