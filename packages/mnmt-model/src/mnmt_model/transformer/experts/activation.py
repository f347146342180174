"""What an expert computes between its two maps, and its gradient: ReLU or a gated unit, with dropout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor

from mnmt_model.transformer import native
from mnmt_model.transformer.operations import Unit, dropout, dropout_mask
from mnmt_model.transformer.operations.dropout import draw_seed, threshold
from mnmt_model.transformer.operations.gated import gated_gradient, plain_gated
from mnmt_model.transformer.products import Products, Shape


@dataclass(frozen=True, kw_only=True)
class Activation:
    """ReLU(z), or f(a) * b of z that holds a's columns and then b's, with dropout.

    The gradient draws the mask again, from the seed, so that it is not stored.
    """

    name: str
    """`relu`, `gated-gelu` or `gated-silu`, as `ModelConfig.expert_feed_forward`."""
    rate: float = 0.0
    """Dropout's."""
    seed: int = 0
    is_native: bool = False
    """Whether it is our own in C++."""

    @property
    def unit(self) -> Unit | None:
        """The gated unit's f; None for ReLU."""
        return None if self.name == "relu" else cast(Unit, self.name.removeprefix("gated-"))

    @property
    def width(self) -> int:
        """The columns of z for each of the result."""
        return 1 if self.unit is None else 2

    def seeded(self, products: Products, z: Tensor) -> Activation:
        """Return this with a mask of its own, in the way of the table for `z`."""
        is_native = products.is_native("expert_activation", z, inner=1, columns=z.size(1) // self.width)
        return replace(self, seed=draw_seed() if self.rate else 0, is_native=is_native)

    def plain(self, z: Tensor) -> Tensor:
        """Return the result by operators that torch differentiates and compiles."""
        return dropout(z.relu() if self.unit is None else plain_gated(z, self.unit), self.rate)

    def forward(self, z: Tensor) -> Tensor:
        """Return the result, `(rows, d_ff)`, without gradient; ReLU's takes the place of `z`."""
        if self.is_native:
            return self._native(z)
        y = z.relu_() if self.unit is None else plain_gated(z, self.unit)
        return y.mul_(self._mask(y)) if self.rate else y

    def backward(self, z: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """Return the result again, and the gradient of z.

        Args:
            z: What `forward` got; for ReLU what it returned.
            gradient: That of the result, whose place may be taken.
        """
        if self.is_native:
            return self._native_gradient(z, gradient)
        if self.rate:
            gradient.mul_(self._mask(gradient))
        if self.unit is None:
            return z, torch.ops.aten.threshold_backward(gradient, z, 0)
        y, grad_z = gated_gradient(gradient, z, self.unit)
        return y.mul_(self._mask(y)) if self.rate else y, grad_z

    def _mask(self, like: Tensor) -> Tensor:
        return dropout_mask(like.shape, self.rate, like, seed=self.seed)

    def _native(self, z: Tensor) -> Tensor:
        options = (self.seed, threshold(self.rate))
        if self.unit is None:
            native.run("relu", z, z.numel(), *options)
            return z
        y = z.new_empty(len(z), z.size(1) // 2)
        native.run(f"gated_{self.unit}", z, y, *y.shape, *options)
        return y

    def _native_gradient(self, z: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
        least = threshold(self.rate)
        if self.unit is None:
            native.run("relu_gradient", gradient, z, z.numel(), 2**32 / least if least else 1.0)
            return z, gradient
        y, grad_z = torch.empty_like(gradient), torch.empty_like(z)
        options = (*gradient.shape, self.seed, least)
        native.run(f"gated_gradient_{self.unit}", gradient, z, y, grad_z, *options)
        return y, grad_z


def activation_work(shape: Shape) -> Callable[[Products], object]:
    """Return what computes a gated unit of such a shape and its gradient; ReLU takes the same way."""
    z = torch.randn(shape.rows, 2 * shape.columns, dtype=getattr(torch, shape.dtype))
    gradient = torch.ones(shape.rows, shape.columns, dtype=z.dtype)

    def compute(products: Products) -> object:
        activation = Activation(name="gated-gelu").seeded(products, z)
        return activation.forward(z), activation.backward(z, gradient)

    return torch.no_grad()(compute)
