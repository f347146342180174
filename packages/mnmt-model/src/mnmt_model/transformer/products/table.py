"""The table of which way each matrix product takes, and linear maps that obey it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_model.transformer.products.ways import PRODUCTS, WAYS, Kind, Product, Shape, can_take, nearest_power

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

    def experts(self, x: Tensor, weights: Tensor) -> Tensor:
        """Return the products x_i W_i, `(number, rows, columns)`.

        Args:
            x: `(number, rows, inner)`.
            weights: `(number, inner, columns)`.
        """
        number, inner, columns = weights.shape
        way = self._way("experts", x, number, x.size(1), inner, columns)
        if way == "bmm":
            return torch.bmm(x, weights)
        if way == "grouped_mm":
            return F.grouped_mm(x, weights)
        y: Tensor = _Experts.apply(x, weights, PRODUCTS[way])  # type: ignore[no-untyped-call]
        return y

    def ragged_experts(self, x: Tensor, weights: Tensor, ends: Tensor) -> Tensor:
        """Return the product of each row with its expert's weights, `(rows, columns)`; 0 without an expert.

        Args:
            x: `(rows, inner)`, the rows of the first expert, then those of the second, and so on.
            weights: `(number, inner, columns)`.
            ends: `(number,)` int64, the row after the last of each expert.
        """
        number, inner, columns = weights.shape
        way = "torch" if torch.is_grad_enabled() else self._way("ragged", x, number, len(x), inner, columns)
        if way == "grouped_mm" and int(ends[-1]) == len(x):
            return F.grouped_mm(x, weights, offs=ends.int())
        y = x.new_zeros(len(x), columns)
        start = 0
        for weight, end in zip(weights, ends.tolist(), strict=True):
            if end > start:
                y[start:end] = PRODUCTS.get(way, PRODUCTS["torch"])(x[start:end], weight.T)
            start = end
        return y

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


class _Experts(torch.autograd.Function):
    """The linear maps of experts, one after the other in one way."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weights: Tensor, product: Product) -> Tensor:
        ctx.save_for_backward(x, weights)
        ctx.product = product
        return torch.stack([product(rows, weight.T) for rows, weight in zip(x, weights, strict=True)])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weights = ctx.saved_tensors
        pairs = list(zip(x, gradients[0], weights, strict=True))
        grad_x = grad_weights = None
        if ctx.needs_input_grad[0]:
            grad_x = torch.stack([ctx.product(gradient, weight) for _, gradient, weight in pairs])
        if ctx.needs_input_grad[1]:
            grad_weights = torch.stack([ctx.product(rows.T, gradient.T) for rows, gradient, _ in pairs])
        return grad_x, grad_weights, None
