"""Rows of a matrix, as an embedding takes them."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name everybody uses


def rows(weight: Tensor, indices: Tensor) -> Tensor:
    """Return the rows `(n, columns)` of `weight` that `indices (n,)` names.

    On a CPU the gradient of a selection takes half the time of an embedding's.
    """
    return F.embedding(indices, weight) if weight.is_cuda else weight.index_select(0, indices)
