"""The experts' weights in the precision of the states, cast once for several passes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.distributed.tensor import DTensor


class CastWeight(NamedTuple):
    """A weight, and what it is in the precision of the states."""

    weight: Tensor
    """The rows in this process, of which gradients are computed."""
    cast: Tensor
    """The same in the precision of the states, without gradient."""

    def differentiable(self) -> Tensor:
        """Return `cast`, whose gradient reaches `weight`."""
        if self.weight.dtype == self.cast.dtype or torch.compiler.is_compiling():
            return self.weight.to(self.cast.dtype)
        cast: Tensor = _Cast.apply(self.weight, self.cast)  # type: ignore[no-untyped-call]
        return cast


class Casts:
    """Casts weights, once for all passes inside `cast_once` and anew for each outside.

    The copies end with `cast_once`, since nothing tells that a weight has changed: AdamW's fused step and a
    copy into a DTensor's local part leave version counters alone.
    """

    def __init__(self) -> None:
        self.copies: dict[int, tuple[Tensor, Tensor]] | None = None
        """{identity of a weight: the weight and its copy}, or None outside `cast_once`."""

    def local(self, weight: Tensor, dtype: torch.dtype) -> CastWeight:
        """Return the rows of `weight` in this process, and what they are in `dtype`."""
        rows = weight.to_local() if isinstance(weight, DTensor) else weight
        if rows.dtype == dtype or self.copies is None or torch.compiler.is_compiling():
            return CastWeight(rows, rows.detach().to(dtype))
        if id(weight) not in self.copies:
            self.copies[id(weight)] = weight, rows.detach().to(dtype)
        return CastWeight(rows, self.copies[id(weight)][1])


@contextmanager
def cast_once(model: nn.Module) -> Iterator[None]:
    """Cast the weights of the model's experts once for all passes inside, where nothing may change them.

    The copies take the memory that a forward pass keeps of them for its backward pass in any case, but for
    all layers at a time also where activations are recomputed.
    """
    holders = (getattr(module, "casts", None) for module in model.modules())
    casts = [each for each in holders if isinstance(each, Casts)]
    for each in casts:
        each.copies = {}
    try:
        yield
    finally:
        for each in casts:
            each.copies = None


class _Cast(Function):
    """`weight` in the precision of `copy`, which holds it already."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, copy: Tensor) -> Tensor:
        ctx.dtype = weight.dtype
        return copy.view_as(copy)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient.to(ctx.dtype), None
