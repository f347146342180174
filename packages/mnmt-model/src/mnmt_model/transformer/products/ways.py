"""The ways to compute a matrix product, and whether this machine has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_model.transformer.products.onednn import onednn_product

Kind = Literal["linear", "forward", "grad_input", "grad_weight", "experts", "ragged"]
"""What a product is for.

`forward`, `grad_input` and `grad_weight` are the three products of a linear map. `linear` is the map with its
gradients: one operator of torch's, or the three products each in its way. `experts` are the maps of all
experts, as many rows each, with their gradients; `ragged` are those of different numbers of rows, without.
"""

SINGLE: tuple[Kind, ...] = ("forward", "grad_input", "grad_weight")
"""The products of a linear map: of its result, of its input's gradient, of its weights'."""


class Shape(NamedTuple):
    """The shape of a product: of `number` linear maps, each of `rows` states."""

    kind: Kind
    dtype: str
    """"float32" or "bfloat16"."""
    number: int
    rows: int
    inner: int
    """Width of the states."""
    columns: int
    """Width of the result."""

    def __str__(self) -> str:
        """Return such as "forward float32 1x2048x64x256"."""
        return f"{self.kind} {self.dtype} {self.number}x{self.rows}x{self.inner}x{self.columns}"

    @classmethod
    def parse(cls, text: str) -> Shape:
        """Return the shape that `str` writes as `text`.

        Raises:
            ValueError: If `text` is of no shape.
        """
        kind, dtype, sizes = text.split(" ")
        number, rows, inner, columns = map(int, sizes.split("x"))
        return cls(kind, dtype, number, rows, inner, columns)  # type: ignore[arg-type]


def torch_product(a: Tensor, b: Tensor) -> Tensor:
    """Return a bᵀ as torch computes it: in float32 on a CPU, with MKL."""
    return a @ b.T


def onednn_transposed_product(a: Tensor, b: Tensor) -> Tensor:
    """Return a bᵀ as oneDNN's (b aᵀ)ᵀ: it copies a transposed first operand, which should be the smaller."""
    # Whatever is done next with a transposed gradient takes longer than this copy.
    return onednn_product(b, a).T.contiguous()


def float32_product(a: Tensor, b: Tensor) -> Tensor:
    """Return a bᵀ computed in float32, which is faster than bfloat16 on processors that lack it."""
    return (a.float() @ b.float().T).to(a.dtype)


Product = Callable[[Tensor, Tensor], Tensor]
"""Returns a bᵀ, `(rows, columns)`, of `a (rows, inner)` and `b (columns, inner)`, without gradient."""

PRODUCTS: Mapping[str, Product] = {
    "torch": torch_product,
    "onednn": onednn_product,
    "onednn_transposed": onednn_transposed_product,
    "float32": float32_product,
}
"""The ways of a single product."""

WAYS: Mapping[Kind, tuple[str, ...]] = {
    "linear": ("torch", "separate"),
    "forward": ("torch", "onednn", "float32"),
    "grad_input": ("torch", "onednn", "float32"),
    "grad_weight": ("torch", "onednn", "onednn_transposed", "float32"),
    "experts": ("bmm", "grouped_mm", "torch", "onednn"),
    "ragged": ("torch", "onednn", "grouped_mm"),
}
"""The ways of each kind; the first is taken where nothing was measured, and is torch's everywhere.

For experts, `torch` and `onednn` compute one expert after the other.
"""


def can_take(way: str, shape: Shape) -> bool:
    """Return whether this machine can compute a shape in a way."""
    if way.startswith("onednn"):
        return has_onednn(shape.dtype)
    if way == "float32":
        return shape.dtype != "float32"
    if way == "grouped_mm":
        # It refuses rows that do not begin at multiples of 16 bytes.
        fits = all(width * getattr(torch, shape.dtype).itemsize % 16 == 0 for width in shape[-2:])
        return fits and hasattr(F, "grouped_mm")
    return way in WAYS[shape.kind]


@cache
def has_onednn(dtype: str) -> bool:
    """Return whether oneDNN computes linear maps in such a precision here."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    one = torch.ones(1, 1, dtype=getattr(torch, dtype))
    try:
        onednn_product(one, one)
    except (AttributeError, RuntimeError):
        # This torch lacks the operator, or the processor lacks what oneDNN needs for the type.
        return False
    return True
