"""The products of experts: of each expert's rows with its matrix."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_model.transformer import native
from mnmt_model.transformer.products.ways import PRODUCTS


def experts_product(way: str, x: Tensor, weights: Tensor, ends: Tensor) -> Tensor:
    """Return the product of each row with its expert's matrix, `(rows, columns)`; 0 without an expert.

    Args:
        way: How it is computed; see `WAYS`.
        x: `(rows, inner)`.
        weights: `(number, inner, columns)`.
        ends: `(number,)` int32, the row after the last of each expert.
    """
    if way == "bmm":
        return _from_bins(torch.bmm(_to_bins(x, ends), weights), ends, len(x))
    if way == "grouped_mm":
        end = int(ends[-1])
        y = F.grouped_mm(x[:end], weights, offs=ends)
        return F.pad(y, (0, 0, 0, len(x) - end)) if end < len(x) else y
    y = x.new_empty(len(x), weights.size(2))
    y[int(ends[-1]) :] = 0
    if way == "native":
        return _native_product(x, weights, ends, y)
    for expert, rows in _segments(ends):
        if rows.stop > rows.start:
            _multiply(way, x[rows], weights[expert].T, y[rows])
    return y


def experts_grad_weights(
    way: str, x: Tensor, gradient: Tensor, ends: Tensor, *, dtype: torch.dtype
) -> Tensor:
    """Return the gradients of all experts' matrices, x_eᵀ g_e, `(number, inner, columns)`, in a precision.

    Args:
        way: How they are computed; see `WAYS`.
        x: `(rows, inner)`.
        gradient: `(rows, columns)`.
        ends: `(number,)` int32, the row after the last of each expert.
        dtype: The precision of the result.
    """
    if way == "bmm":
        return torch.bmm(_to_bins(x, ends).transpose(1, 2), _to_bins(gradient, ends)).to(dtype)
    if way == "grouped_mm":
        end = int(ends[-1])
        return F.grouped_mm(x[:end].T, gradient[:end], offs=ends).to(dtype)
    if way == "native":
        return _native_gradients(x, gradient, ends, dtype)
    gradients = x.new_empty(len(ends), x.size(1), gradient.size(1), dtype=dtype)
    for expert, rows in _segments(ends):
        if rows.stop > rows.start:
            _multiply(way, x[rows].T, gradient[rows].T, gradients[expert])
        else:
            gradients[expert] = 0
    return gradients


def torch_experts_product(x: Tensor, weights: Tensor, ends: Tensor) -> Tensor:
    """Return `experts_product` by operators that torch differentiates and compiles, without a loop.

    What is in rows without an expert is undefined.
    """
    inner, columns = weights.shape[1:]
    step = 16 // x.element_size()
    # It refuses rows that do not begin at multiples of 16 bytes.
    missing = (-inner % step, -columns % step)
    if any(missing):
        x, weights = F.pad(x, (0, missing[0])), F.pad(weights, (0, missing[1], 0, missing[0]))
    return F.grouped_mm(x, weights, offs=ends)[:, :columns]


def _multiply(way: str, a: Tensor, b: Tensor, out: Tensor) -> None:
    """Write a bᵀ to `out`."""
    if way == "torch" and out.dtype == a.dtype:
        torch.mm(a, b.T, out=out)
    else:
        out.copy_(PRODUCTS[way](a, b))


def _native_product(x: Tensor, weights: Tensor, ends: Tensor, y: Tensor) -> Tensor:
    is_transposed = not weights.is_contiguous()
    matrices = weights.transpose(1, 2) if is_transposed else weights
    options = (*weights.shape, is_transposed)
    native.run("experts_product", x.contiguous(), matrices.contiguous(), y, ends, *options)
    return y


def _native_gradients(x: Tensor, gradient: Tensor, ends: Tensor, dtype: torch.dtype) -> Tensor:
    # Sums of bfloat16 are in float32 and need no rounding.
    is_sum = (x.dtype, dtype) == (torch.bfloat16, torch.float32)
    sizes = (len(ends), x.size(1), gradient.size(1))
    gradients = x.new_empty(sizes, dtype=dtype if is_sum else x.dtype)
    native.run("experts_gradient_of", x.contiguous(), gradient.contiguous(), gradients, ends, *sizes, is_sum)
    return gradients.to(dtype)


def _segments(ends: Tensor) -> Iterator[tuple[int, slice]]:
    """Yield all experts with their rows."""
    for expert, (start, end) in enumerate(pairwise([0, *ends.tolist()])):
        yield expert, slice(start, end)


def _to_bins(x: Tensor, ends: Tensor) -> Tensor:
    """Return `(number, most rows of any, inner)`: each expert's rows, then zeros."""
    counts = ends.diff(prepend=ends.new_zeros(1)).tolist()
    if len(set(counts)) == 1 and counts[0] * len(counts) == len(x):
        return x.reshape(len(counts), counts[0], -1)
    bins = x.new_zeros(len(counts), max(counts), x.size(1))
    for expert, rows in _segments(ends):
        bins[expert, : counts[expert]] = x[rows]
    return bins


def _from_bins(bins: Tensor, ends: Tensor, num_rows: int) -> Tensor:
    """Return the rows of all experts, `(num_rows, columns)`, of what `_to_bins` laid out; the rest is 0."""
    if bins.size(0) * bins.size(1) == num_rows == int(ends[-1]):
        return bins.view(num_rows, -1)
    y = bins.new_empty(num_rows, bins.size(2))
    for expert, rows in _segments(ends):
        y[rows] = bins[expert, : rows.stop - rows.start]
    y[int(ends[-1]) :] = 0
    return y
