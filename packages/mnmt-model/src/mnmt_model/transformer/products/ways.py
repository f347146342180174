"""The ways to compute a matrix product, and whether this machine has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_model.transformer import native
from mnmt_model.transformer.native import has_library
from mnmt_model.transformer.products.onednn import onednn_product

Kind = Literal[
    "linear",
    "forward",
    "grad_input",
    "grad_weight",
    "experts",
    "ragged",
    "rms_norm",
    "gated_gelu",
    "dropout",
    "cross_entropy",
    "attention",
    "clipping",
    "adafactor",
]
"""What a product is for, or another operation.

`forward`, `grad_input` and `grad_weight` are the three products of a linear map. `linear` is the map with its
gradients: one operator of torch's, or the three products each in its way. `experts` are the maps of all
experts, as many rows each, with their gradients; `ragged` are those of different numbers of rows, without.
The others are operations of `transformer.operations`, with their gradients, and what is done with all
parameters: the clipping of gradients, and Adafactor's step.
"""

SINGLE: tuple[Kind, ...] = ("forward", "grad_input", "grad_weight")
"""The products of a linear map: of its result, of its input's gradient, of its weights'."""


class Shape(NamedTuple):
    """The shape of a product: of `number` linear maps, each of `rows` states."""

    kind: Kind
    dtype: str
    """"float32", "bfloat16" or "float64"."""
    number: int
    rows: int
    inner: int
    """Width of the states; of a head in attention, whose `number` is that of its heads."""
    columns: int
    """Width of the result; the mean length of sentences in attention; the mean size of all parameters."""

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


@lru_cache(maxsize=4096)
def nearest_power(number: float) -> int:
    """Return the exponent of the power of two that is nearest to a number, of 1 at least."""
    return (max(1, round(number)) ** 2).bit_length() // 2


def torch_product(a: Tensor, b: Tensor) -> Tensor:
    """Return a bᵀ as torch computes it: in float32 on a CPU, with MKL."""
    return a @ b.T


def onednn_transposed_product(a: Tensor, b: Tensor) -> Tensor:
    """Return a bᵀ as oneDNN's (b aᵀ)ᵀ: it copies a transposed first operand, which should be the smaller."""
    # Whatever is done next with a transposed gradient takes longer than this copy.
    return onednn_product(b, a).T.contiguous()


def native_product(a: Tensor, b: Tensor) -> Tensor:
    """Return a bᵀ by our own in C++, for matrices so small that MKL and oneDNN mostly prepare."""
    b = b if 1 in b.stride() else b.contiguous()
    y = a.new_empty(len(a), len(b))
    native.run("product", a, b, y, *a.stride(), *b.stride(), *a.shape, len(b))
    return y


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
    "native": native_product,
}
"""The ways of a single product."""

WAYS: Mapping[Kind, tuple[str, ...]] = {
    "linear": ("torch", "separate"),
    "forward": ("torch", "onednn", "float32", "native"),
    "grad_input": ("torch", "onednn", "float32", "native"),
    "grad_weight": ("torch", "onednn", "onednn_transposed", "float32", "native"),
    "experts": ("bmm", "grouped_mm", "torch", "onednn"),
    "ragged": ("torch", "onednn", "grouped_mm"),
    "rms_norm": ("torch", "native"),
    "gated_gelu": ("torch", "native"),
    "dropout": ("torch", "native"),
    "cross_entropy": ("torch", "native"),
    "attention": ("torch", "native"),
    "clipping": ("torch", "native"),
    "adafactor": ("torch", "native"),
}
"""The ways of each kind; the first is taken where nothing was measured, and is torch's everywhere.

For experts, `torch` and `onednn` compute one expert after the other. `native` is our own, in C++.
"""


MOST_NATIVE_FLOPS = 2**29
"""Products above are left to libraries, which cut them into blocks for the caches."""


def can_take(way: str, shape: Shape) -> bool:
    """Return whether this machine can compute a shape in a way."""
    if way.startswith("onednn"):
        return has_onednn(shape.dtype)
    if way == "native":
        is_large = shape.kind in SINGLE and 2 * shape.rows * shape.inner * shape.columns > MOST_NATIVE_FLOPS
        return shape.dtype in ("float32", "float64") and not is_large and has_library()
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
