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
    "experts_forward",
    "experts_grad_input",
    "experts_grad_weights",
    "expert_activation",
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
gradients: one operator of torch's, or the three products each in its way. `experts_forward`, … are the same
products of the maps of all experts, each of its own rows; `expert_activation` is what comes between two maps.
The others are operations of `transformer.operations`, with their gradients, and what is done with all
parameters: the clipping of gradients, and Adafactor's step.
"""

SINGLE: tuple[Kind, ...] = ("forward", "grad_input", "grad_weight")
"""The products of a linear map: of its result, of its input's gradient, of its weights'."""

EXPERTS: tuple[Kind, ...] = ("experts_forward", "experts_grad_input", "experts_grad_weights")
"""The same products of the maps of all experts."""


class Shape(NamedTuple):
    """The shape of a product: of `number` linear maps, of `rows` states in all."""

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
    "experts_forward": ("torch", "bmm", "grouped_mm", "float32", "onednn", "native"),
    "experts_grad_input": ("torch", "bmm", "grouped_mm", "float32", "onednn", "native"),
    "experts_grad_weights": (
        *("torch", "bmm", "grouped_mm", "float32", "onednn_transposed", "onednn", "native"),
    ),
    "expert_activation": ("torch", "native"),
    "rms_norm": ("torch", "native"),
    "gated_gelu": ("torch", "native"),
    "dropout": ("torch", "native"),
    "cross_entropy": ("torch", "native"),
    "attention": ("torch", "native"),
    "clipping": ("torch", "native"),
    "adafactor": ("torch", "native"),
}
"""The ways of each kind; the first is taken where nothing was measured, and is torch's everywhere.

`native` is our own, in C++. For experts all but this, `grouped_mm`, and `bmm`, of bins with zeros where an
expert has fewer rows than another, compute one expert after the other.
"""


MOST_NATIVE_FLOPS = 2**29
"""Products above are left to libraries, which cut them into blocks for the caches."""


def can_take(way: str, shape: Shape) -> bool:
    """Return whether this machine can compute a shape in a way."""
    if way.startswith("onednn"):
        return has_onednn(shape.dtype)
    if way == "native":
        return _has_native(shape)
    if way == "float32":
        return shape.dtype != "float32"
    if way == "grouped_mm":
        # It refuses rows that do not begin at multiples of 16 bytes.
        fits = all(width * getattr(torch, shape.dtype).itemsize % 16 == 0 for width in shape[-2:])
        return fits and hasattr(F, "grouped_mm")
    return way in WAYS[shape.kind]


def _has_native(shape: Shape) -> bool:
    if shape.kind in EXPERTS:
        # In bfloat16 a step of a sum takes two of its numbers.
        fits = shape.dtype != "bfloat16" or (shape.inner % 2 == 0 and shape.columns % 2 == 0)
    elif shape.kind in SINGLE:
        fits = 2 * shape.rows * shape.inner * shape.columns <= MOST_NATIVE_FLOPS
        fits = fits and shape.dtype != "bfloat16"
    else:
        fits = shape.dtype != "bfloat16" or shape.kind == "expert_activation"
    return fits and has_library()


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
