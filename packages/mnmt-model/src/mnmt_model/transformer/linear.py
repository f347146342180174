"""Linear maps and norms whose float32 weights act on states of any precision."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.products import linear

EPSILON = 1e-6
"""Of every norm."""


class Linear(nn.Linear):
    """x Wᵀ (+ b), in the precision of x."""

    def __init__(self, in_features: int, out_features: int, *, bias: bool) -> None:
        super().__init__(in_features, out_features, bias=bias)
        self.has_bias = bias

    def forward(self, x: Tensor) -> Tensor:
        """Map `(…, in_features)` to `(…, out_features)`."""
        bias = self.get_parameter("bias").to(x.dtype) if self.has_bias else None
        return linear(x, self.weight.to(x.dtype), bias)


class RMSNorm(nn.Module):
    """x / sqrt(mean x² + ε) · weight, over the last dimension."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Tensor) -> Tensor:
        """Map `(…, d_model)` to the same shape."""
        return F.rms_norm(x, self.weight.shape, self.weight.to(x.dtype), EPSILON)


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
    """The norm that `config` names."""
    return RMSNorm(config.d_model) if config.norm == "rms" else LayerNorm(config.d_model)
