"""Matrix products in oneDNN, which torch carries for other types, of shapes that come again."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

STEPS = 32
"""Numbers of rows between a power of two and the next for which oneDNN is given code to write."""


def round_rows(rows: int) -> int:
    """Return the next number of rows that oneDNN is given: a multiple of 1 / `STEPS` of a power of two."""
    return -(-rows // _step(rows)) * _step(rows)


def onednn_product(a: Tensor, b: Tensor) -> Tensor:
    """Return a bᵀ, `(rows, columns)`, of `a (rows, inner)` and `b (columns, inner)`, without gradient.

    oneDNN writes machine code for each shape when it first meets it, which takes a millisecond, longer than a
    small product, and remembers the last 1,024. Batches seldom have the same number of tokens. So it is given
    multiples of a 32nd of the power of two below, and what is left over is padded or left to torch.
    """
    if a.size(0) and a.stride() == (1, a.size(0)):
        return _product_over_tokens(a, b)
    rows = len(a)
    missing = round_rows(rows) - rows
    if not missing:
        return _product(a, b)
    if len(b) >= b.size(1):
        return _product(F.pad(a, (0, 0, 0, missing)), b)[:rows]
    whole = rows - rows % _step(rows)
    return torch.cat([_product(a[:whole], b), a[whole:] @ b.T])


def _product_over_tokens(a: Tensor, b: Tensor) -> Tensor:
    """Return a bᵀ, such as a weight's gradient, of two tables of tokens, both of which are transposed."""
    tokens = a.size(1)
    whole = tokens - tokens % _step(tokens)
    result = _product(a[:, :whole].contiguous(), b[:, :whole])
    return result if whole == tokens else result.addmm_(a[:, whole:], b[:, whole:].T)


def _product(a: Tensor, b: Tensor) -> Tensor:
    result: Tensor = torch.ops.mkldnn._linear_pointwise(a, b, None, "none", [], "")
    return result


def _step(size: int) -> int:
    """Return the number of which `size` is made a multiple."""
    return max(1, (1 << (size.bit_length() - 1)) // STEPS) if size else 1
