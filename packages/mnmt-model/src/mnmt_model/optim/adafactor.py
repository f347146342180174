"""Adafactor as the papers' training library has it (Shazeer & Stern 2018, with T5X's choices)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import tensor as distributed_tensor
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer

from mnmt_model.distributed.shards import check_placements, local, row_shards, summed

DECAY = 0.8
EPSILON_GRADIENT = 1e-30
EPSILON_PARAMETER = 1e-3
MIN_FACTORED = 128


def is_factored(parameter: Tensor) -> bool:
    """Whether second moments are kept as a row and a column: of matrices with both dimensions ≥ 128."""
    return parameter.dim() in (2, 3) and min(parameter.shape[-2:]) >= MIN_FACTORED


class Adafactor(Optimizer):
    """Adafactor without momentum.

    With g the gradient and t the step from 1:

        v ← β2 v + (1 - β2)(g² + 1e-30),  β2 = 1 - t^-0.8      (row and column means where factored)
        u = g / √v,  u ← u / max(1, RMS(u))
        θ ← θ - lr · max(1e-3, RMS(θ)) · u

    `lr` is relative to the scale of each parameter. A parameter of three dimensions is a stack of matrices,
    the weights of experts: each is updated as a parameter of its own would be.

    Parameters may be DTensors sharded by their first dimension, as FSDP2 and expert parallelism leave them;
    `row` and `v` are then sharded alike, `column` and `step` are the same on every rank, and a step takes two
    all-reduces, of the column sums and of the squared norms. A stack's matrices each lie on one rank, and so
    does their `column`; they need none.

    Raises:
        ValueError: If a parameter is not float32, or sharded in another way.
    """

    def __init__(self, params: Iterable[Tensor], lr: float) -> None:
        super().__init__(params, {"lr": lr})
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
            self._advance(params)
            for shards, sharded_alike in _by_shards(params).items():
                stacks = [self._stack(parameter) for parameter in sharded_alike]
                for whole, factored in _batches(stacks, shards):
                    _update(whole, factored, group["lr"], shards)
        return loss

    def _advance(self, params: list[Tensor]) -> None:
        for parameter in params:
            state = self.state[parameter]
            if not state:
                state.update(_initial_state(parameter))
        if params:
            torch._foreach_add_([self.state[p]["step"] for p in params], 1)

    def _stack(self, parameter: Tensor) -> WholeStack | FactoredStack:
        assert parameter.grad is not None
        state, stacked = self.state[parameter], is_stacked(parameter)
        # A stack's first dimension is that of its matrices.
        shape = parameter.shape[1:] if stacked else parameter.shape
        tensors = {"parameter": parameter, "grad": parameter.grad}
        tensors |= {name: tensor for name, tensor in state.items() if name != "step"}
        parts: dict[str, Any] = {name: as_stack(each, stacked=stacked) for name, each in tensors.items()}
        parts |= {"size": shape.numel(), "weight": float(state["step"]) ** -DECAY}
        return FactoredStack(**parts, num_rows=shape[0]) if "row" in state else WholeStack(**parts)


def _initial_state(parameter: Tensor) -> dict[str, Tensor]:
    step = torch.zeros(())
    if not is_factored(parameter):
        return {"step": step, "v": torch.zeros_like(parameter)}
    *stack, rows, columns = parameter.shape
    row = _zeros((*stack, rows), parameter)
    if stack:
        return {"step": step, "row": row, "column": _zeros((*stack, columns), parameter)}
    return {"step": step, "row": row, "column": torch.zeros(columns, device=parameter.device)}


def _zeros(shape: tuple[int, ...], parameter: Tensor) -> Tensor:
    """Zeros where `parameter` lies, sharded as it is."""
    if isinstance(parameter, DTensor):
        return distributed_tensor.zeros(
            shape, device_mesh=parameter.device_mesh, placements=parameter.placements
        )
    return torch.zeros(shape, device=parameter.device)


def _by_shards(params: Iterable[Tensor]) -> dict[dist.ProcessGroup | None, list[Tensor]]:
    """Parameters by the ranks that hold the rows of a matrix together, None where this rank has them all."""
    groups: dict[dist.ProcessGroup | None, list[Tensor]] = {}
    for parameter in params:
        shards = None if is_stacked(parameter) else row_shards(parameter)
        # More ranks than matrices leave none of a stack to some.
        if not is_stacked(parameter) or len(local(parameter)):
            groups.setdefault(shards, []).append(parameter)
    return groups


def _batches(
    stacks: Sequence[WholeStack | FactoredStack], shards: dist.ProcessGroup | None
) -> list[tuple[list[WholeStack], list[FactoredStack]]]:
    """What to update together, whole and factored: all, or on one processor each matrix alone.

    A matrix then stays in the processor's cache from the first look at its gradient to its update.
    """
    whole = [stack for stack in stacks if isinstance(stack, WholeStack)]
    factored = [stack for stack in stacks if isinstance(stack, FactoredStack)]
    if shards is not None or stacks[0].parameter.device.type != "cpu":
        return [(whole, factored)]
    alone: list[tuple[list[WholeStack], list[FactoredStack]]]
    alone = [([], [matrix]) for stack in factored for matrix in stack.split()]
    return [(whole, []), *alone] if whole else alone


def _update(
    whole: list[WholeStack], factored: list[FactoredStack], lr: float, shards: dist.ProcessGroup | None
) -> None:
    """One step of parameters with a `v` of their own and of factored ones, whose u is never stored."""
    updates = whole_updates(whole)
    scalings = factored_scalings(factored, shards)
    lengths = update_norms(factored, scalings)
    if whole:
        lengths.insert(0, norms(updates))
    scales = _step_sizes([*whole, *factored], lengths, lr, shards)
    add_whole_updates(whole, updates, scales[: len(whole)])
    add_updates(factored, scalings, scales[len(whole) :])


def _step_sizes(
    stacks: Sequence[Stack], lengths: list[Tensor], lr: float, shards: dist.ProcessGroup | None
) -> list[Tensor]:
    """-lr · max(1e-3, RMS(θ)) / max(1, RMS(u)) of each matrix, from the norms of the local rows of u."""
    params = [stack.parameter for stack in stacks]
    (squares,) = summed([torch.cat([*lengths, norms(params)]).square_()], shards)
    sizes = [stack.size for stack in stacks for _ in range(len(stack.parameter))]
    update_rms, param_rms = (squares.view(2, -1) / torch.tensor(sizes, device=squares.device)).sqrt_()
    scales = -lr * param_rms.clamp_(min=EPSILON_PARAMETER) / update_rms.clamp_(min=1.0)
    return by_stack(scales, params)


def _check(parameter: Tensor) -> None:
    if parameter.dtype != torch.float32:
        raise ValueError(f"Adafactor's parameters must be float32, but one is {parameter.dtype}.")
    check_placements(parameter)


def is_stacked(parameter: Tensor) -> bool:
    """Whether a parameter is a stack of matrices that count as parameters, as the weights of experts are."""
    return parameter.dim() == 3


def as_stack(tensor: Tensor, *, stacked: bool) -> Tensor:
    """What of a tensor lies on this rank, sharing its memory, with the matrices of the stack in front."""
    return local(tensor) if stacked else local(tensor).unsqueeze(0)


@dataclass(frozen=True, kw_only=True)
class Stack:
    """n tensors of one shape: what of them lies on this rank."""

    parameter: Tensor
    """`(n, *shape)`, as all tensors here."""
    grad: Tensor
    size: int
    """Elements of each, on all ranks."""
    weight: float
    """1 - β2 of this step."""


@dataclass(frozen=True, kw_only=True)
class WholeStack(Stack):
    """Tensors with second moments of their own."""

    v: Tensor


def whole_updates(stacks: Sequence[WholeStack]) -> list[Tensor]:
    """The u = g / √v of each stack, v being brought up to date."""
    if not stacks:
        return []
    moments, grads = [stack.v for stack in stacks], [stack.grad for stack in stacks]
    average(moments, list(torch._foreach_mul(grads, grads)), [stack.weight for stack in stacks])
    updates = torch._foreach_rsqrt(moments)
    torch._foreach_mul_(updates, grads)
    return list(updates)


def add_whole_updates(stacks: Sequence[WholeStack], updates: list[Tensor], scales: Sequence[Tensor]) -> None:
    """θ ← θ + scale · u; overwrites the updates."""
    if stacks:
        shapes = [[-1] + [1] * (update.dim() - 1) for update in updates]
        torch._foreach_mul_(updates, [scale.view(shape) for scale, shape in zip(scales, shapes, strict=True)])
        torch._foreach_add_([stack.parameter for stack in stacks], updates)


def average(moments: list[Tensor], squares: list[Tensor], weights: list[float]) -> None:
    """Bring moments up to date: v ← β2 v + (1 - β2)(g² + 1e-30); overwrites the squares."""
    torch._foreach_add_(squares, EPSILON_GRADIENT)
    torch._foreach_lerp_(moments, squares, weights)


def norms(stacks: Sequence[Tensor], *, order: int = 2) -> Tensor:
    """The norms of the local parts of all stacks' tensors, `(sum of n,)`."""
    return torch.stack(torch._foreach_norm([tensor for stack in stacks for tensor in stack.unbind()], order))


def by_stack(values: Tensor, stacks: Sequence[Tensor]) -> list[Tensor]:
    """A value of each tensor of all stacks, `(sum of n,)`, as values, `(n,)`, of each stack's tensors."""
    return list(values.split_with_sizes([len(stack) for stack in stacks]))


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
