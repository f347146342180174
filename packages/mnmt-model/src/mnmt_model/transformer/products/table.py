"""The table of which way each matrix product takes, and linear maps that obey it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_model.transformer.products.experts import experts_grad_weights, experts_product
from mnmt_model.transformer.products.ways import PRODUCTS, WAYS, Kind, Shape, can_take, nearest_power

DTYPES = {torch.float32: "float32", torch.bfloat16: "bfloat16", torch.float64: "float64"}
"""The precisions that a table distinguishes."""


@dataclass(frozen=True, kw_only=True)
class Products:
    """Which way each matrix product of a model takes.

    A shape that the table lacks takes the way of the shape most like it. Numbers of rows that round to the
    same power of two are alike, so that batches of a run, which differ in tokens, take the same ways.

    On other devices than CPUs, under torch.compile and under torch.func, and without a table, all products
    are torch's own.
    """

    ways: Mapping[Shape, str] = field(default_factory=dict)
    _memory: dict[Any, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return x Wᵀ (+ bias), `(rows, columns)`, of `x (rows, inner)` and `weight (columns, inner)`."""
        is_differentiated = torch.is_grad_enabled()
        columns, inner = weight.shape
        kind: Kind = "linear" if is_differentiated else "forward"
        if x.dim() != 2 or self._way(kind, x, 1, x.size(0), inner, columns) == "torch":
            return F.linear(x, weight, bias)
        if is_differentiated:
            y: Tensor = _Linear.apply(x, weight, self)  # type: ignore[no-untyped-call]
        else:
            # A Function costs more than a small product.
            y = self.forward(x, weight)
        return y if bias is None else y + bias

    def forward(self, x: Tensor, weight: Tensor) -> Tensor:
        """Return x Wᵀ, `(rows, columns)`, of `x (rows, inner)` and `weight (columns, inner)`, no gradient."""
        columns, inner = weight.shape
        return PRODUCTS[self._way("forward", x, 1, x.size(0), inner, columns)](x, weight)

    def grad_input(self, gradient: Tensor, weight: Tensor) -> Tensor:
        """Return g W, `(rows, inner)`, of `gradient (rows, columns)` and `weight (columns, inner)`."""
        columns, inner = weight.shape
        way = self._way("grad_input", gradient, 1, gradient.size(0), inner, columns)
        return PRODUCTS[way](gradient, weight.T)

    def grad_weight(self, gradient: Tensor, x: Tensor) -> Tensor:
        """Return gᵀ x, `(columns, inner)`, of `gradient (rows, columns)` and `x (rows, inner)`."""
        rows, columns = gradient.shape
        return PRODUCTS[self._way("grad_weight", x, 1, rows, x.size(1), columns)](gradient.T, x.T)

    def experts(self, x: Tensor, weights: Tensor, ends: Tensor) -> Tensor:
        """Return the product of each row with its expert's matrix, `(rows, columns)`, without gradient.

        Args:
            x: `(rows, inner)`, the rows of the first expert, then those of the second, and so on. The result
                is 0 in rows without an expert, after the last end.
            weights: `(number, inner, columns)`.
            ends: `(number,)` int32, the row after the last of each expert.
        """
        way = self._experts_way("experts_forward", x, weights, ends)
        return experts_product(way, x, weights, ends)

    def experts_grad_input(self, gradient: Tensor, weights: Tensor, ends: Tensor) -> Tensor:
        """Return the gradient `(rows, inner)` of x in `experts`, of the result's `(rows, columns)`."""
        way = self._experts_way("experts_grad_input", gradient, weights, ends)
        return experts_product(way, gradient, weights.transpose(1, 2), ends)

    def experts_grad_weights(self, gradient: Tensor, x: Tensor, weights: Tensor, ends: Tensor) -> Tensor:
        """Return the gradient of the weights in `experts`, in the shape and precision of `weights`."""
        way = self._experts_way("experts_grad_weights", x, weights, ends)
        return experts_grad_weights(way, x, gradient, ends, dtype=weights.dtype)

    def is_native(self, kind: Kind, x: Tensor, *, inner: int, columns: int, number: int = 1) -> bool:
        """Return whether an operation on `x (rows, …)` is our own in C++; see `Shape` for the sizes."""
        return self._way(kind, x, number, x.size(0), inner, columns) == "native"

    def way(self, shape: Shape) -> str:
        """Return the way of a shape: that of the shape in the table that is most like it, or torch's own."""
        alike = [other for other in self.ways if other[:2] == shape[:2]]
        if not alike:
            return WAYS[shape.kind][0]
        way = self.ways[min(alike, key=lambda other: _distance(shape, other))]
        return way if can_take(way, shape) else WAYS[shape.kind][0]

    def _way(self, kind: Kind, x: Tensor, number: int, rows: int, inner: int, columns: int) -> str:
        """Return the way of a product of `x`."""
        if not self.ways or _is_torchs(x) or not rows:
            return WAYS[kind][0]
        power = nearest_power(rows)
        key = (kind, x.dtype, number, power, inner, columns)
        if key not in self._memory:
            self._memory[key] = self.way(Shape(kind, DTYPES[x.dtype], number, 2**power, inner, columns))
        return self._memory[key]

    def _experts_way(self, kind: Kind, x: Tensor, weights: Tensor, ends: Tensor) -> str:
        way = self._way(kind, x, len(weights), len(x), *weights.shape[1:])
        return way if int(ends[-1]) else WAYS[kind][0]


def _is_torchs(x: Tensor) -> bool:
    """Return whether torch alone can compute with `x`."""
    return (
        not x.is_cpu
        or x.dtype not in DTYPES
        or torch.compiler.is_compiling()
        or torch._C._functorch.is_functorch_wrapped_tensor(x)
    )


def _distance(shape: Shape, other: Shape) -> float:
    """Return how different the sizes of two shapes of one kind are."""
    return sum(abs(math.log2(size / theirs)) for size, theirs in zip(shape[2:], other[2:], strict=True))


TORCH = Products()
"""Torch's own products."""


class _Linear(torch.autograd.Function):
    """A linear map each of whose products takes its way."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, products: Products) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.products = products
        return products.forward(x, weight)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        products: Products = ctx.products
        grad_x = products.grad_input(gradients[0], weight) if ctx.needs_input_grad[0] else None
        grad_weight = products.grad_weight(gradients[0], x) if ctx.needs_input_grad[1] else None
        return grad_x, grad_weight, None
