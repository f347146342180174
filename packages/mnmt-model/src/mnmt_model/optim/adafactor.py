"""Adafactor as the papers' training library has it (Shazeer & Stern 2018, with T5X's choices)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import tensor as distributed_tensor
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.optim import Optimizer

from mnmt_model.distributed.shards import check_placements, local, row_shards, sum_over_ranks
from mnmt_model.optim.native_adafactor import ONE, can_be_native, update_natively
from mnmt_model.transformer.products import TORCH, Products

DECAY = 0.8
EPSILON_GRADIENT = 1e-30
EPSILON_PARAMETER = 1e-3
MIN_FACTORED = 128


def is_factored(parameter: Tensor) -> bool:
    """Return whether second moments are a row and a column: those of matrices with both dimensions ≥ 128."""
    return parameter.dim() in (2, 3) and min(parameter.shape[-2:]) >= MIN_FACTORED


class Adafactor(Optimizer):
    """Adafactor without momentum.

    With g the gradient and t the step from 1:

        v ← β2 v + (1 - β2)(g² + 1e-30),  β2 = 1 - t^-0.8      (row and column means where factored)
        u = g / √v,  u ← u / max(1, RMS(u))
        θ ← θ - lr · max(1e-3, RMS(θ)) · u

    `lr` is relative to the scale of each parameter. A parameter of three dimensions is a stack of matrices,
    such as the weights of experts. Each matrix is updated as a parameter of its own would be.

    Parameters may be DTensors sharded by their first dimension, as by FSDP2 and expert parallelism. `row` and
    `v` are then sharded in the same way, `column` and `step` are the same on every rank, and a step takes two
    all-reduces: of the column sums and of the squared norms. Each matrix of a stack lies on one rank with its
    `column`, and needs no all-reduce, unless the stack is sharded by the rows of its matrices too.

    Args:
        params: The parameters, or groups of them.
        lr: The learning rate.
        products: The ways of operations.

    Raises:
        ValueError: If a parameter is not float32, or is sharded in another way.
    """

    def __init__(self, params: Iterable[Any], lr: float, *, products: Products = TORCH) -> None:
        super().__init__(params, {"lr": lr})
        self.products = products
        for group in self.param_groups:
            for parameter in group["params"]:
                _check(parameter)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Update every parameter that has a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            self._initialise(params)
            if self._is_native(params):
                update_natively(params, [self.state[parameter] for parameter in params], group["lr"])
                continue
            if params:
                torch._foreach_add_([self.state[p]["step"] for p in params], 1)
            for shards, group_params in _by_shards(params).items():
                stacks = [self._stack(parameter) for parameter in group_params]
                for unfactored, factored in _batches(stacks, shards):
                    _update(unfactored, factored, group["lr"], shards)
        return loss

    def _initialise(self, params: Iterable[Tensor]) -> None:
        for parameter in params:
            state = self.state[parameter]
            if not state:
                state.update(_initial_state(parameter))

    def _is_native(self, params: Sequence[Tensor]) -> bool:
        if not params or not can_be_native(params):
            return False
        return self.products.is_native("adafactor", params[0], **ONE, number=len(params))

    def _stack(self, parameter: Tensor) -> UnfactoredStack | FactoredStack:
        """Return what of a parameter, its gradient and its state lies on this rank."""
        assert parameter.grad is not None
        state, stacked = self.state[parameter], is_stacked(parameter)
        # The first dimension of a stack counts its matrices.
        shape = parameter.shape[1:] if stacked else parameter.shape
        tensors = {"parameter": parameter, "grad": parameter.grad}
        tensors |= {name: tensor for name, tensor in state.items() if name != "step"}
        parts: dict[str, Any] = {name: as_stack(tensor, stacked=stacked) for name, tensor in tensors.items()}
        parts |= {"size": shape.numel(), "weight": float(state["step"]) ** -DECAY}
        return FactoredStack(**parts, num_rows=shape[0]) if "row" in state else UnfactoredStack(**parts)


def _initial_state(parameter: Tensor) -> dict[str, Tensor]:
    step = torch.zeros(())
    if not is_factored(parameter):
        return {"step": step, "v": torch.zeros_like(parameter)}
    *stack, rows, columns = parameter.shape
    row = _zeros((*stack, rows), parameter)
    if stack:
        return {"step": step, "row": row, "column": _zeros((*stack, columns), parameter, by_rows=False)}
    return {"step": step, "row": row, "column": torch.zeros(columns, device=parameter.device)}


def _zeros(shape: tuple[int, ...], parameter: Tensor, *, by_rows: bool = True) -> Tensor:
    """Return zeros on the device of `parameter`, sharded as it is; a stack's not `by_rows` if so asked."""
    if isinstance(parameter, DTensor):
        placements = [
            Replicate() if each == Shard(1) and not by_rows else each for each in parameter.placements
        ]
        return distributed_tensor.zeros(shape, device_mesh=parameter.device_mesh, placements=placements)
    return torch.zeros(shape, device=parameter.device)


def _by_shards(params: Iterable[Tensor]) -> dict[dist.ProcessGroup | None, list[Tensor]]:
    """Group parameters by the ranks that hold the rows of a matrix together, None where this rank has all."""
    groups: dict[dist.ProcessGroup | None, list[Tensor]] = {}
    for parameter in params:
        shards = row_shards(parameter, 1 if is_stacked(parameter) else 0)
        # With more ranks than matrices, some ranks have none of a stack.
        if not is_stacked(parameter) or len(local(parameter)):
            groups.setdefault(shards, []).append(parameter)
    return groups


def _batches(
    stacks: Sequence[UnfactoredStack | FactoredStack], shards: dist.ProcessGroup | None
) -> list[tuple[list[UnfactoredStack], list[FactoredStack]]]:
    """Return what to update together, unfactored and factored: all, or on one CPU each matrix alone.

    A matrix then stays in the CPU's cache from the first use of its gradient to its update.
    """
    unfactored = [stack for stack in stacks if isinstance(stack, UnfactoredStack)]
    factored = [stack for stack in stacks if isinstance(stack, FactoredStack)]
    if shards is not None or stacks[0].parameter.device.type != "cpu":
        return [(unfactored, factored)]
    single: list[tuple[list[UnfactoredStack], list[FactoredStack]]]
    single = [([], [matrix]) for stack in factored for matrix in stack.split()]
    return [(unfactored, []), *single] if unfactored else single


def _update(
    unfactored: list[UnfactoredStack],
    factored: list[FactoredStack],
    lr: float,
    shards: dist.ProcessGroup | None,
) -> None:
    """Take one step of unfactored parameters and of factored ones, whose u is never stored."""
    updates = unfactored_updates(unfactored)
    scalings = factored_scalings(factored, shards)
    lengths = factored_update_norms(factored, scalings)
    if unfactored:
        lengths.insert(0, norms(updates))
    scales = _step_sizes([*unfactored, *factored], lengths, lr, shards)
    add_unfactored_updates(unfactored, updates, scales[: len(unfactored)])
    add_factored_updates(factored, scalings, scales[len(unfactored) :])


def _step_sizes(
    stacks: Sequence[TensorStack], lengths: list[Tensor], lr: float, shards: dist.ProcessGroup | None
) -> list[Tensor]:
    """Return -lr · max(1e-3, RMS(θ)) / max(1, RMS(u)) of each matrix, given the norms of u's local rows."""
    params = [stack.parameter for stack in stacks]
    (squares,) = sum_over_ranks([torch.cat([*lengths, norms(params)]).square_()], shards)
    sizes = [stack.size for stack in stacks for _ in range(len(stack.parameter))]
    update_rms, param_rms = (squares.view(2, -1) / torch.tensor(sizes, device=squares.device)).sqrt_()
    scales = -lr * param_rms.clamp_(min=EPSILON_PARAMETER) / update_rms.clamp_(min=1.0)
    return split_by_stack(scales, params)


def _check(parameter: Tensor) -> None:
    if parameter.dtype != torch.float32:
        raise ValueError(f"Adafactor's parameters must be float32, but one is {parameter.dtype}.")
    check_placements(parameter)


def is_stacked(parameter: Tensor) -> bool:
    """Return whether a parameter is a stack of matrices, such as the weights of experts."""
    return parameter.dim() == 3


def as_stack(tensor: Tensor, *, stacked: bool) -> Tensor:
    """Return this rank's part of a tensor, sharing its memory, as a stack: one of size 1 if not `stacked`."""
    return local(tensor) if stacked else local(tensor).unsqueeze(0)


@dataclass(frozen=True, kw_only=True)
class TensorStack:
    """This rank's parts of n tensors of one shape."""

    parameter: Tensor
    """`(n, *shape)`."""
    grad: Tensor
    """`(n, *shape)`."""
    size: int
    """Number of elements of each tensor, on all ranks."""
    weight: float
    """1 - β2 in this step."""


@dataclass(frozen=True, kw_only=True)
class UnfactoredStack(TensorStack):
    """Tensors with a second moment for each element."""

    v: Tensor
    """`(n, *shape)`, the second moments."""


def unfactored_updates(stacks: Sequence[UnfactoredStack]) -> list[Tensor]:
    """Update each stack's v, and return its u = g / √v."""
    if not stacks:
        return []
    moments, grads = [stack.v for stack in stacks], [stack.grad for stack in stacks]
    update_moments(moments, list(torch._foreach_mul(grads, grads)), [stack.weight for stack in stacks])
    updates = torch._foreach_rsqrt(moments)
    torch._foreach_mul_(updates, grads)
    return list(updates)


def add_unfactored_updates(
    stacks: Sequence[UnfactoredStack], updates: list[Tensor], scales: Sequence[Tensor]
) -> None:
    """Update θ ← θ + scale · u; overwrites the updates."""
    if stacks:
        shapes = [[-1] + [1] * (update.dim() - 1) for update in updates]
        torch._foreach_mul_(updates, [scale.view(shape) for scale, shape in zip(scales, shapes, strict=True)])
        torch._foreach_add_([stack.parameter for stack in stacks], updates)


def update_moments(moments: list[Tensor], squares: list[Tensor], weights: list[float]) -> None:
    """Update second moments, v ← β2 v + (1 - β2)(g² + 1e-30); overwrites the squares."""
    torch._foreach_add_(squares, EPSILON_GRADIENT)
    torch._foreach_lerp_(moments, squares, weights)


def norms(stacks: Sequence[Tensor], *, order: int = 2) -> Tensor:
    """Return the norms `(sum of n,)` of this rank's parts of the tensors of all stacks."""
    return torch.stack(torch._foreach_norm([tensor for stack in stacks for tensor in stack.unbind()], order))


def split_by_stack(values: Tensor, stacks: Sequence[Tensor]) -> list[Tensor]:
    """Split values `(sum of n,)` of the tensors of all stacks into values `(n,)` of each stack's."""
    return list(values.split_with_sizes([len(stack) for stack in stacks]))


@dataclass(frozen=True, kw_only=True)
class FactoredStack(TensorStack):
    """Matrices `(n, rows, columns)` whose second moments are factored (Shazeer & Stern 2018, section 3)."""

    row: Tensor
    """`(n, rows)`, the mean second moment of each row."""
    column: Tensor
    """`(n, columns)`, the mean second moment of each column."""
    num_rows: int
    """Number of rows of each matrix, on all ranks."""

    def split(self) -> list[FactoredStack]:
        """Return each matrix as a stack of one."""
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
    """Update rows and columns, and return the two vectors whose outer product is 1 / √v."""
    if not stacks:
        return []
    rows, columns = [stack.row for stack in stacks], [stack.column for stack in stacks]
    weights, sizes = [stack.weight for stack in stacks], [stack.num_rows for stack in stacks]
    row_means, column_sums = _square_sums(stacks)
    update_moments(rows, row_means, weights)
    # Norms of order 1 are sums, since rows are positive.
    row_sums = split_by_stack(norms(rows, order=1).unsqueeze(1), rows)
    sums = sum_over_ranks(column_sums + row_sums, shards)
    torch._foreach_div_(sums, sizes + sizes)
    update_moments(columns, sums[: len(stacks)], weights)
    row_shares = torch._foreach_div(rows, sums[len(stacks) :])
    return list(zip(torch._foreach_rsqrt(row_shares), torch._foreach_rsqrt(columns), strict=True))


def factored_update_norms(
    stacks: Iterable[FactoredStack], scalings: Iterable[tuple[Tensor, Tensor]]
) -> list[Tensor]:
    """Return ‖u‖ of each matrix, u = g · row · column, without making u: √ Σ row² (g² column²)."""
    lengths = []
    for stack, (row, column) in zip(stacks, scalings, strict=True):
        squares = torch.bmm(stack.grad.square(), column.square().unsqueeze(2)).squeeze(2)
        lengths.append(torch.linalg.vecdot(squares.mul_(row), row).sqrt_())
    return lengths


def add_factored_updates(
    stacks: Iterable[FactoredStack], scalings: Iterable[tuple[Tensor, Tensor]], scales: Iterable[Tensor]
) -> None:
    """Update θ ← θ + scale · u without making u."""
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
