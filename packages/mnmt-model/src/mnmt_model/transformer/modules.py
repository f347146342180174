"""Linear maps, norms and dropout: the smallest modules of a model."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.operations import dropout, dropout_mask, joint_linear, rms_norm
from mnmt_model.transformer.products import TORCH


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

    def __init__(self, d_model: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.epsilon = epsilon
        self.products = TORCH

    def forward(self, x: Tensor) -> Tensor:
        """Map `(…, d_model)` to the same shape."""
        return rms_norm(x, self.weight.to(x.dtype), self.epsilon, self.products)


class LayerNorm(nn.Module):
    """(x - mean x) / sqrt(var x + ε) · weight + bias, over the last dimension."""

    def __init__(self, d_model: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        """Map `(…, d_model)` to the same shape."""
        weight, bias = self.weight.to(x.dtype), self.bias.to(x.dtype)
        return F.layer_norm(x, self.weight.shape, weight, bias, self.epsilon)


def make_norm(config: ModelConfig) -> nn.Module:
    """Return the norm that `config` names."""
    kind = RMSNorm if config.norm == "rms" else LayerNorm
    return kind(config.d_model, config.norm_epsilon)


class Dropout(nn.Module):
    """Zeroes elements at a rate and scales the others, in training."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.products = TORCH

    @property
    def training_rate(self) -> float:
        """The rate in training, 0 otherwise."""
        return self.rate if self.training else 0.0

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """Return what dropout leaves of `x`, and `residual` added to it: the same shape."""
        return dropout(x, self.training_rate, residual, self.products)

    def mask(self, shape: Sequence[int], like: Tensor) -> Tensor | None:
        """Draw the factors of a tensor of a shape, in the precision of `like`; None if they are all 1."""
        return dropout_mask(shape, self.training_rate, like) if self.training_rate else None
