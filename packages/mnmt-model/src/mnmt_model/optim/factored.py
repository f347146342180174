"""Second moments of matrices as the outer product of a row and a column (Shazeer & Stern 2018, §3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch
import torch.distributed as dist
from torch import Tensor

from mnmt_model.distributed.shards import summed
from mnmt_model.optim.stacks import Stack, average, by_stack, norms


@dataclass(frozen=True, kw_only=True)
class FactoredStack(Stack):
    """Matrices, `(n, rows, columns)`, with the means of their second moments over rows and columns."""

    row: Tensor
    """`(n, rows)`."""
    column: Tensor
    """`(n, columns)`."""
    num_rows: int
    """Of each matrix, on all ranks."""

    def split(self) -> list[FactoredStack]:
        """Each matrix alone."""
        if len(self.parameter) == 1:
            return [self]
        parts = zip(
            *(torch.split(x, 1) for x in (self.parameter, self.grad, self.row, self.column)), strict=True
        )
        return [
            replace(self, parameter=parameter, grad=grad, row=row, column=column)
            for parameter, grad, row, column in parts
        ]


def factored_scalings(
    stacks: Sequence[FactoredStack], shards: dist.ProcessGroup | None
) -> list[tuple[Tensor, Tensor]]:
    """Bring rows and columns up to date; 1 / √v is the outer product of the two that are returned."""
    if not stacks:
        return []
    rows, columns = [stack.row for stack in stacks], [stack.column for stack in stacks]
    weights, sizes = [stack.weight for stack in stacks], [stack.num_rows for stack in stacks]
    row_means, column_sums = _square_sums(stacks)
    average(rows, row_means, weights)
    # Sums: rows are positive.
    row_sums = by_stack(norms(rows, order=1).unsqueeze(1), rows)
    sums = summed(column_sums + row_sums, shards)
    torch._foreach_div_(sums, sizes + sizes)
    average(columns, sums[: len(stacks)], weights)
    row_shares = torch._foreach_div(rows, sums[len(stacks) :])
    return list(zip(torch._foreach_rsqrt(row_shares), torch._foreach_rsqrt(columns), strict=True))


def update_norms(stacks: Iterable[FactoredStack], scalings: Iterable[tuple[Tensor, Tensor]]) -> list[Tensor]:
    """‖u‖ of each matrix, u = g · row · column, without u: √ Σ row² (g² column²)."""
    found = []
    for stack, (row, column) in zip(stacks, scalings, strict=True):
        squares = torch.bmm(stack.grad.square(), column.square().unsqueeze(2)).squeeze(2)
        found.append(torch.linalg.vecdot(squares.mul_(row), row).sqrt_())
    return found


def add_updates(
    stacks: Iterable[FactoredStack], scalings: Iterable[tuple[Tensor, Tensor]], scales: Iterable[Tensor]
) -> None:
    """θ ← θ + scale · u, u never being stored."""
    for stack, (row, column), scale in zip(stacks, scalings, scales, strict=True):
        scaled_rows = (row * scale.unsqueeze(1)).unsqueeze(2)
        stack.parameter.addcmul_(stack.grad * scaled_rows, column.unsqueeze(1))


def _square_sums(stacks: Sequence[FactoredStack]) -> tuple[list[Tensor], list[Tensor]]:
    """Means of g² over each local row, sums over each column."""
    row_means, column_sums = [], []
    for stack in stacks:
        square = stack.grad.square()
        row_means.append(square.mean(dim=2))
        column_sums.append(square.sum(dim=1))
    return row_means, column_sums
