"""RMSNorm."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_model.transformer.operations.eager import has_gradient


def rms_norm(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """Return x / sqrt(mean x² + ε) · weight, over the last dimension.

    Args:
        x: `(rows, d_model)`.
        weight: `(d_model,)`.
        epsilon: ε.
    """
    if x.dim() != 2 or not has_gradient(x):
        plain: Tensor = F.rms_norm(x, weight.shape, weight, epsilon)
        return plain
    y: Tensor = _RMSNorm.apply(x, weight, epsilon)  # type: ignore[no-untyped-call]
    return y


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
