"""Adafactor as the papers' training library has it (Shazeer & Stern 2018, with T5X's choices)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import tensor as distributed_tensor
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer

from mnmt_model.distributed.shards import check_placements, local, row_shards, summed
from mnmt_model.optim.factored import FactoredStack, add_updates, factored_scalings, update_norms
from mnmt_model.optim.stacks import (
    Stack,
    WholeStack,
    add_whole_updates,
    as_stack,
    by_stack,
    is_stacked,
    norms,
    whole_updates,
)

DECAY = 0.8
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
