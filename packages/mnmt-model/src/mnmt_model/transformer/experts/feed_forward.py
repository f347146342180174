"""The feed-forwards of a stack of experts as one operation, forward and backward."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mnmt_model.transformer.experts.activation import Activation
from mnmt_model.transformer.experts.casts import CastWeight
from mnmt_model.transformer.products import Products, torch_experts_product


class ExpertWeights(NamedTuple):
    """The matrices of a stack of experts."""

    wi: CastWeight
    """`(number, d_model, width · d_ff)`; see `Activation.width`."""
    wo: CastWeight
    """`(number, d_ff, d_model)`."""


def expert_feed_forward(
    x: Tensor, ends: Tensor | None, weights: ExpertWeights, activation: Activation, products: Products
) -> Tensor:
    """Return wo_e f(wi_e x) of each row x of each expert e, in the shape of `x`.

    The gradients of the parameters are computed in their precision, each in one tensor. For them are stored x
    and what comes out of `wi`, of ReLU what it lets through.

    Args:
        x: `(rows, d_model)`, the rows of the first expert, then those of the second, and so on; or
            `(number, rows, d_model)`.
        ends: `(number,)` int32, the row after the last of each expert, for the former. In rows after all of
            them the result is undefined.
        weights: The experts'.
        activation: f.
        products: The ways of products and activation.
    """
    if not x.is_cpu or torch.compiler.is_compiling():
        return _plain(x, ends, weights, activation)
    if ends is None:
        ends = torch.arange(1, len(x) + 1, dtype=torch.int32) * x.size(1)
    y: Tensor = _ExpertFeedForward.apply(  # type: ignore[no-untyped-call]
        x.flatten(0, -2), *weights.wi, *weights.wo, ends, activation, products
    )
    return y.view_as(x)


def _plain(x: Tensor, ends: Tensor | None, weights: ExpertWeights, activation: Activation) -> Tensor:
    """Compute by operators that torch differentiates and compiles.

    `torch.bmm` is one kernel on a GPU, and `grouped_mm` in bfloat16 where the compute capability is 9 or 10.
    Elsewhere, as in float32, `grouped_mm` multiplies group by group, and waits for the GPU to know `ends`.
    """
    product = torch.bmm if ends is None else partial(torch_experts_product, ends=ends)
    hidden = activation.plain(product(x, weights.wi.differentiable()))
    return product(hidden, weights.wo.differentiable())


class _ExpertFeedForward(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        wi: Tensor,
        wi_cast: Tensor,
        wo: Tensor,
        wo_cast: Tensor,
        ends: Tensor,
        activation: Activation,
        products: Products,
    ) -> Tensor:
        z = products.experts(x, wi_cast, ends)
        activation = activation.seeded(products, z)
        hidden = activation.forward(z)
        ctx.save_for_backward(x, z, wi, wo, wi_cast, wo_cast, ends)
        ctx.activation, ctx.products = activation, products
        return products.experts(hidden, wo_cast, ends)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, z, wi, wo, wi_cast, wo_cast, ends = ctx.saved_tensors
        products: Products = ctx.products
        gradient = gradients[0].contiguous()
        needs_x, needs_wi, _, needs_wo = ctx.needs_input_grad[:4]
        hidden, grad_z = ctx.activation.backward(z, products.experts_grad_input(gradient, wo_cast, ends))
        return (
            products.experts_grad_input(grad_z, wi_cast, ends) if needs_x else None,
            products.experts_grad_weights(grad_z, x, wi, ends) if needs_wi else None,
            None,
            products.experts_grad_weights(gradient, hidden, wo, ends) if needs_wo else None,
            *(None,) * 4,
        )
