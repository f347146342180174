"""Several linear maps of the same states as one matrix product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mnmt_model.transformer.operations.eager import has_gradient
from mnmt_model.transformer.products import Products


def joint_linear(x: Tensor, weights: Sequence[Tensor], products: Products) -> Tensor:
    """Return the products x W_iᵀ side by side, `(rows, sum of columns)`.

    Args:
        x: `(rows, inner)`.
        weights: Matrices `(columns, inner)`, in the precision of `x`.
        products: The ways of the product.
    """
    if not has_gradient(x):
        return products.linear(x, torch.cat(list(weights)))
    y: Tensor = _JointLinear.apply(x, products, *weights)  # type: ignore[no-untyped-call]
    return y


class _JointLinear(torch.autograd.Function):
    """Joins the matrices again for the gradient, so that no copy of them stays in memory."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, products: Products, *weights: Tensor) -> Tensor:
        ctx.save_for_backward(x, *weights)
        ctx.products = products
        return products.forward(x, torch.cat(weights))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, *weights = ctx.saved_tensors
        products: Products = ctx.products
        grad_x = products.grad_input(gradients[0], torch.cat(weights)) if ctx.needs_input_grad[0] else None
        grad_weights = products.grad_weight(gradients[0], x)
        return grad_x, None, *grad_weights.split_with_sizes([len(weight) for weight in weights])
