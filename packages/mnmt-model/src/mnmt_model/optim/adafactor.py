"""Adafactor (Shazeer & Stern 2018) with the choices of T5X, the library of the papers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.optim import Optimizer

from mnmt_model.distributed.copies import runs_behind, to_device
from mnmt_model.distributed.shards import check_placements, is_distributed, local, row_shards, sum_over_ranks

DECAY = 0.8
EPSILON_GRADIENT = 1e-30
EPSILON_PARAMETER = 1e-3
MIN_FACTORED = 128


def is_factored(parameter: Tensor) -> bool:
    """Return whether second moments are factored: for matrices with both dimensions ≥ 128."""
    return parameter.dim() in (2, 3) and min(parameter.shape[-2:]) >= MIN_FACTORED


class Adafactor(Optimizer):
    """Adafactor without momentum.

    With g the gradient and t the step from 1:

        v ← β2 v + (1 - β2)(g² + 1e-30),  β2 = 1 - t^-0.8      (row and column means where factored)
        u = g / √v,  u ← u / max(1, RMS(u))
        θ ← θ - lr · max(1e-3, RMS(θ)) · u

    `lr` is relative to the scale of each parameter. A parameter with three dimensions is a stack of matrices,
    such as the weights of experts. Each matrix is updated like a separate parameter.

    Parameters may be DTensors sharded by their first dimension, as by FSDP2 and expert parallelism. `row` and
    `v` are then sharded in the same way, `column` and `step` are the same on every rank, and a step takes two
    all-reduces: of the column sums and of the squared norms. Each matrix of a stack lies on one rank with its
    `column`, and needs no all-reduce, unless the stack is sharded by the rows of its matrices too.

    As in torch's fused optimisers, a step with an attribute `found_inf`, a scalar, of 1 changes nothing. No
    step reads a number from the device.

    Args:
        params: The parameters, or groups of them.
        lr: The learning rate.

    Raises:
        ValueError: If a parameter is not float32, or has other placements.
    """

    found_inf: Tensor | None = None

    def __init__(self, params: Iterable[Any], lr: float) -> None:
        super().__init__(params, {"lr": lr})
        for group in self.param_groups:
            for parameter in group["params"]:
                _check(parameter)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Update every parameter that has a gradient; sets the gradients of a skipped step to 0."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            self._initialise(params)
            weights = self._count_step(params)
            for shards, group_params in _by_shards(params).items():
                unfactored = UnfactoredMatrices.of(
                    [p for p in group_params if not is_factored(p)], self.state, weights
                )
                factored = [self._stack(p, weights[p]) for p in group_params if is_factored(p)]
                for batch in _batches(unfactored, factored, shards):
                    _update(*batch, group["lr"], shards)
        return loss

    def _initialise(self, params: Iterable[Tensor]) -> None:
        for parameter in params:
            state = self.state[parameter]
            if not state:
                state.update(_initial_state(parameter))

    def _count_step(self, params: Sequence[Tensor]) -> dict[Tensor, Tensor]:
        """Count a step of each parameter, and return {parameter: 1 - β2}.

        A skipped step is not counted; its gradients of 0 and weights of 0 change nothing.
        """
        if not params:
            return {}
        steps = [self.state[p]["step"] for p in params]
        taken = torch.ones_like(steps[0])
        if self.found_inf is not None:
            taken -= self.found_inf
            if runs_behind(taken.device) or not taken:
                skipped = taken == 0
                for p in params:
                    assert p.grad is not None
                    local(p.grad).masked_fill_(skipped, 0.0)
        torch._foreach_add_(steps, [taken] * len(steps))
        weights = torch.stack(steps).clamp(min=1).double() ** -DECAY * taken
        return dict(zip(params, weights.float().unbind(), strict=True))

    def _stack(self, parameter: Tensor, weight: Tensor) -> FactoredStack:
        """Return this rank's part of a factored parameter, its gradient and its state."""
        state, stacked = self.state[parameter], is_stacked(parameter)
        tensors = {
            "parameter": parameter,
            "grad": parameter.grad,
            "row": state["row"],
            "column": state["column"],
        }
        parts: dict[str, Any] = {name: as_stack(tensor, stacked=stacked) for name, tensor in tensors.items()}
        num_rows, num_columns = parameter.shape[-2:]
        return FactoredStack(**parts, size=num_rows * num_columns, num_rows=num_rows, weight=weight)


def _initial_state(parameter: Tensor) -> dict[str, Tensor]:
    """Return the state before the first step.

    Moments are 1, since a skipped step divides by them; the first one that is taken does not read them.
    """
    step = torch.zeros((), device=parameter.device)
    if not is_factored(parameter):
        return {"step": step, "v": torch.ones_like(parameter)}
    *stack, rows, columns = parameter.shape
    row = _ones((*stack, rows), parameter)
    if stack:
        return {"step": step, "row": row, "column": _ones((*stack, columns), parameter, by_rows=False)}
    return {"step": step, "row": row, "column": torch.ones(columns, device=parameter.device)}


def _ones(shape: tuple[int, ...], parameter: Tensor, *, by_rows: bool = True) -> Tensor:
    """Return ones on the device of `parameter`, sharded like it; over rows of matrices only if `by_rows`."""
    if is_distributed(parameter):
        from torch.distributed.tensor import Replicate, Shard, ones

        placements = [
            Replicate() if each == Shard(1) and not by_rows else each for each in parameter.placements
        ]
        return ones(shape, device_mesh=parameter.device_mesh, placements=placements)
    return torch.ones(shape, device=parameter.device)


def _by_shards(params: Iterable[Tensor]) -> dict[dist.ProcessGroup | None, list[Tensor]]:
    """Group parameters by the ranks that share the rows of a matrix; None if this rank has all rows."""
    groups: dict[dist.ProcessGroup | None, list[Tensor]] = {}
    for parameter in params:
        shards = row_shards(parameter, 1 if is_stacked(parameter) else 0)
        # With more ranks than matrices, some ranks have no matrix of a stack.
        if not is_stacked(parameter) or len(local(parameter)):
            groups.setdefault(shards, []).append(parameter)
    return groups


Batch = tuple["UnfactoredMatrices", list["FactoredStack"]]


def _batches(
    unfactored: UnfactoredMatrices, factored: list[FactoredStack], shards: dist.ProcessGroup | None
) -> Iterable[Batch]:
    """Return the batches to update together: everything, or on one CPU each factored matrix separately.

    A matrix then stays in the CPU's cache from the first use of its gradient to its update.
    """
    if shards is not None or not all(stack.parameter.is_cpu for stack in factored):
        return [(unfactored, factored)]
    none = UnfactoredMatrices.of([], {}, {})
    matrices: list[Batch] = [(none, [matrix]) for stack in factored for matrix in stack.split()]
    return [(unfactored, []), *matrices] if unfactored.params else matrices


def _update(
    unfactored: UnfactoredMatrices,
    factored: list[FactoredStack],
    lr: float,
    shards: dist.ProcessGroup | None,
) -> None:
    """Update unfactored parameters, and factored ones without storing their u."""
    updates = unfactored_updates(unfactored)
    scalings = factored_scalings(factored, shards)
    lengths = factored_update_norms(factored, scalings)
    if updates:
        lengths.insert(0, torch.stack(torch._foreach_norm(updates)))
    params = unfactored.params + [matrix for stack in factored for matrix in stack.parameter.unbind()]
    sizes = unfactored.sizes + [stack.size for stack in factored for _ in stack.parameter]
    scales = _step_sizes(params, sizes, torch.cat(lengths), lr, shards)
    add_unfactored_updates(unfactored, updates, scales[: len(updates)])
    by_stack = split_by_stack(scales[len(updates) :], [stack.parameter for stack in factored])
    add_factored_updates(factored, scalings, by_stack)


def _step_sizes(
    params: list[Tensor], sizes: list[int], lengths: Tensor, lr: float, shards: dist.ProcessGroup | None
) -> Tensor:
    """Return -lr · max(1e-3, RMS(θ)) / max(1, RMS(u)) of each matrix, given the norms of u's local rows."""
    squares = torch.cat([lengths, torch.stack(torch._foreach_norm(params))]).square_()
    (squares,) = sum_over_ranks([squares], shards)
    update_rms, param_rms = (squares.view(2, -1) / to_device(torch.tensor(sizes), squares.device)).sqrt_()
    scales: Tensor = -lr * param_rms.clamp_(min=EPSILON_PARAMETER) / update_rms.clamp_(min=1.0)
    return scales


def _check(parameter: Tensor) -> None:
    if parameter.dtype != torch.float32:
        raise ValueError(f"Adafactor's parameters must be float32, but one is {parameter.dtype}.")
    check_placements(parameter)


def is_stacked(parameter: Tensor) -> bool:
    """Return whether a parameter is a stack of matrices, such as the weights of experts."""
    return parameter.dim() == 3


def as_stack(tensor: Tensor, *, stacked: bool) -> Tensor:
    """Return this rank's part of a tensor as a stack that shares its memory: of size 1 if not `stacked`."""
    return local(tensor) if stacked else local(tensor).unsqueeze(0)


@dataclass(frozen=True, kw_only=True)
class UnfactoredMatrices:
    """This rank's matrices of parameters with a second moment for each element."""

    params: list[Tensor]
    grads: list[Tensor]
    moments: list[Tensor]
    """v."""
    sizes: list[int]
    """Number of elements of each matrix over all ranks."""
    weights: list[Tensor]
    """1 - β2 in this step, scalars."""

    @classmethod
    def of(
        cls,
        params: Sequence[Tensor],
        state: Mapping[Tensor, Mapping[str, Tensor]],
        weights: Mapping[Tensor, Tensor],
    ) -> UnfactoredMatrices:
        """Return the matrices of parameters with gradients."""
        counts = [len(local(parameter)) if is_stacked(parameter) else 1 for parameter in params]
        sizes = [parameter.shape[-2:].numel() for parameter in params]
        return cls(
            params=_matrices(params),
            grads=_matrices([parameter.grad for parameter in params if parameter.grad is not None]),
            moments=_matrices([state[parameter]["v"] for parameter in params]),
            sizes=[size for size, count in zip(sizes, counts, strict=True) for _ in range(count)],
            weights=[weights[p] for p, count in zip(params, counts, strict=True) for _ in range(count)],
        )


def _matrices(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return this rank's parts, with stacks split into matrices."""
    parts = map(local, tensors)
    return [matrix for part in parts for matrix in (part.unbind() if is_stacked(part) else (part,))]


def unfactored_updates(matrices: UnfactoredMatrices) -> list[Tensor]:
    """Update v, and return u = g / √v of each matrix."""
    if not matrices.params:
        return []
    squares = list(torch._foreach_mul(matrices.grads, matrices.grads))
    update_moments(matrices.moments, squares, matrices.weights)
    updates = torch._foreach_rsqrt(matrices.moments)
    torch._foreach_mul_(updates, matrices.grads)
    return list(updates)


def add_unfactored_updates(matrices: UnfactoredMatrices, updates: list[Tensor], scales: Tensor) -> None:
    """Update θ ← θ + scale · u; overwrites the updates."""
    if updates:
        torch._foreach_mul_(updates, list(scales.unbind()))
        torch._foreach_add_(matrices.params, updates)


def update_moments(moments: list[Tensor], squares: list[Tensor], weights: list[Tensor]) -> None:
    """Update second moments, v ← β2 v + (1 - β2)(g² + 1e-30); overwrites the squares."""
    torch._foreach_add_(squares, EPSILON_GRADIENT)
    torch._foreach_lerp_(moments, squares, weights)


def norms(stacks: Sequence[Tensor], *, order: int = 2) -> Tensor:
    """Return the norms `(sum of n,)` of this rank's parts of the tensors of all stacks."""
    return torch.stack(torch._foreach_norm([tensor for stack in stacks for tensor in stack.unbind()], order))


def split_by_stack(values: Tensor, stacks: Sequence[Tensor]) -> list[Tensor]:
    """Split values `(sum of n,)` of the tensors of all stacks into values `(n,)` for each stack."""
    return list(values.split_with_sizes([len(stack) for stack in stacks]))


@dataclass(frozen=True, kw_only=True)
class FactoredStack:
    """This rank's rows of matrices with factored second moments (Shazeer & Stern 2018, section 3)."""

    parameter: Tensor
    """`(n, rows, columns)`."""
    grad: Tensor
    """`(n, rows, columns)`."""
    row: Tensor
    """`(n, rows)`, the mean second moment of each row."""
    column: Tensor
    """`(n, columns)`, the mean second moment of each column."""
    size: int
    """Number of elements of each matrix, on all ranks."""
    num_rows: int
    """Number of rows of each matrix, on all ranks."""
    weight: Tensor
    """1 - β2 in this step, a scalar."""

    def split(self) -> list[FactoredStack]:
        """Return each matrix as a stack of size 1."""
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
    """Update row and column means, and return the two vectors with the outer product 1 / √v."""
    if not stacks:
        return []
    rows, columns = [stack.row for stack in stacks], [stack.column for stack in stacks]
    weights, sizes = [stack.weight for stack in stacks], [stack.num_rows for stack in stacks]
    row_means, column_sums = _square_sums(stacks)
    update_moments(rows, row_means, weights)
    # Norms of order 1 are sums, since the means are positive.
    row_sums = split_by_stack(norms(rows, order=1).unsqueeze(1), rows)
    sums = sum_over_ranks(column_sums + row_sums, shards)
    torch._foreach_div_(sums, sizes + sizes)
    update_moments(columns, sums[: len(stacks)], weights)
    row_shares = torch._foreach_div(rows, sums[len(stacks) :])
    return list(zip(torch._foreach_rsqrt(row_shares), torch._foreach_rsqrt(columns), strict=True))


def factored_update_norms(
    stacks: Iterable[FactoredStack], scalings: Iterable[tuple[Tensor, Tensor]]
) -> list[Tensor]:
    """Return ‖u‖ of each matrix, u = g · row · column, without storing u: √ Σ row² (g² column²)."""
    lengths = []
    for stack, (row, column) in zip(stacks, scalings, strict=True):
        squares = torch.bmm(stack.grad.square(), column.square().unsqueeze(2)).squeeze(2)
        lengths.append(torch.linalg.vecdot(squares.mul_(row), row).sqrt_())
    return lengths


def add_factored_updates(
    stacks: Iterable[FactoredStack], scalings: Iterable[tuple[Tensor, Tensor]], scales: Iterable[Tensor]
) -> None:
    """Update θ ← θ + scale · u without storing u."""
    for stack, (row, column), scale in zip(stacks, scalings, scales, strict=True):
        scaled_rows = (row * scale.unsqueeze(1)).unsqueeze(2)
        stack.parameter.addcmul_(stack.grad * scaled_rows, column.unsqueeze(1))


def _square_sums(stacks: Sequence[FactoredStack]) -> tuple[list[Tensor], list[Tensor]]:
    """Return the mean of g² over each local row, and its sum over each column."""
    row_means, column_sums = [], []
    for stack in stacks:
        square = stack.grad.square()
        row_means.append(square.mean(dim=2))
        column_sums.append(square.sum(dim=1))
    return row_means, column_sums
