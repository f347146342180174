"""Adafactor as the papers' training library has it (Shazeer & Stern 2018, with T5X's choices)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import tensor as distributed_tensor
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer

from mnmt_model.optim.shards import by_shards, check_placements, local, summed

DECAY = 0.8
EPSILON_GRADIENT = 1e-30
EPSILON_PARAMETER = 1e-3
MIN_FACTORED = 128


def is_factored(parameter: Tensor) -> bool:
    """Whether the second moment is kept as a row and a column: matrices with both dimensions ≥ 128."""
    return parameter.dim() == 2 and min(parameter.shape) >= MIN_FACTORED


class Adafactor(Optimizer):
    """Adafactor without momentum.

    With g the gradient and t the step from 1:

        v ← β2 v + (1 - β2)(g² + 1e-30),  β2 = 1 - t^-0.8      (row and column means where factored)
        u = g / √v,  u ← u / max(1, RMS(u))
        θ ← θ - lr · max(1e-3, RMS(θ)) · u

    `lr` is relative to the scale of each parameter. Parameters may be DTensors sharded by their first
    dimension, as FSDP2 leaves them; `row` and `v` are then sharded alike, `column` and `step` are the same on
    every rank, and a step takes two all-reduces, of the column sums and of the squared norms.

    Raises:
        ValueError: if a parameter is not float32, or sharded in another way.
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
            for shards, sharded_alike in by_shards(params).items():
                for whole, matrices in _batches(sharded_alike, shards):
                    self._update(whole, matrices, group["lr"], shards)
        return loss

    def _advance(self, params: list[Tensor]) -> None:
        for parameter in params:
            state = self.state[parameter]
            if not state:
                state.update(_initial_state(parameter))
        if params:
            torch._foreach_add_([self.state[p]["step"] for p in params], 1)

    def _update(
        self, whole: list[Tensor], matrices: list[Tensor], lr: float, shards: dist.ProcessGroup | None
    ) -> None:
        """One step of parameters with a `v` of their own and of factored ones, whose u is never stored."""
        updates = self._whole_updates(whole)
        slots = [self._slot(p) for p in matrices]
        scalings = _factored_scalings(slots, shards)
        update_norms = _norms(updates)
        update_norms += [_update_norm(slot.grad, *pair) for slot, pair in zip(slots, scalings, strict=True)]
        scales = _step_sizes(whole + matrices, update_norms, lr, shards)
        if whole:
            torch._foreach_mul_(updates, scales[: len(whole)])
            torch._foreach_add_([local(p) for p in whole], updates)
        for slot, (row, column), scale in zip(slots, scalings, scales[len(whole) :], strict=True):
            slot.parameter.addcmul_(slot.grad * (row * scale)[:, None], column)

    def _whole_updates(self, params: list[Tensor]) -> list[Tensor]:
        """The local g / √v of parameters that are not factored, v being brought up to date."""
        if not params:
            return []
        states = [self.state[p] for p in params]
        moments = [local(state["v"]) for state in states]
        grads = [_local_grad(p) for p in params]
        squares = list(torch._foreach_mul(grads, grads))
        _average(moments, squares, [_weight(state) for state in states])
        updates = torch._foreach_rsqrt(moments)
        torch._foreach_mul_(updates, grads)
        return list(updates)

    def _slot(self, parameter: Tensor) -> _Slot:
        state = self.state[parameter]
        return _Slot(
            parameter=local(parameter),
            grad=_local_grad(parameter),
            row=local(state["row"]),
            column=state["column"],
            num_rows=parameter.shape[0],
            weight=_weight(state),
        )


@dataclass(frozen=True, kw_only=True)
class _Slot:
    """A factored matrix's local rows, and its state."""

    parameter: Tensor
    grad: Tensor
    row: Tensor
    column: Tensor
    num_rows: int
    """On all ranks."""
    weight: float


def _initial_state(parameter: Tensor) -> dict[str, Tensor]:
    step = torch.zeros(())
    if not is_factored(parameter):
        return {"step": step, "v": torch.zeros_like(parameter)}
    rows, columns = parameter.shape
    if isinstance(parameter, DTensor):
        row: Tensor = distributed_tensor.zeros(
            rows, device_mesh=parameter.device_mesh, placements=parameter.placements
        )
    else:
        row = torch.zeros(rows, device=parameter.device)
    return {"step": step, "row": row, "column": torch.zeros(columns, device=parameter.device)}


def _weight(state: dict[str, Any]) -> float:
    """1 - β2 of this step."""
    return float(float(state["step"]) ** -DECAY)


def _factored_scalings(
    slots: Sequence[_Slot], shards: dist.ProcessGroup | None
) -> list[tuple[Tensor, Tensor]]:
    """Bring rows and columns up to date; 1 / √v is the outer product of the two vectors returned."""
    if not slots:
        return []
    rows, columns = [slot.row for slot in slots], [slot.column for slot in slots]
    weights, sizes = [slot.weight for slot in slots], [slot.num_rows for slot in slots]
    row_means, column_sums = _square_sums(slots)
    _average(rows, row_means, weights)
    # Sums: rows are positive.
    row_sums = [total.view(1) for total in torch._foreach_norm(rows, 1)]
    sums = summed(column_sums + row_sums, shards)
    torch._foreach_div_(sums, sizes + sizes)
    _average(columns, sums[: len(slots)], weights)
    row_shares = torch._foreach_div(rows, sums[len(slots) :])
    return list(zip(torch._foreach_rsqrt(row_shares), torch._foreach_rsqrt(columns), strict=True))


def _square_sums(slots: Sequence[_Slot]) -> tuple[list[Tensor], list[Tensor]]:
    """Means of g² over each local row, sums over each column."""
    row_means, column_sums = [], []
    for slot in slots:
        square = slot.grad.square()
        row_means.append(square.mean(dim=1))
        column_sums.append(square.sum(dim=0))
    return row_means, column_sums


def _average(moments: list[Tensor], squares: list[Tensor], weights: list[float]) -> None:
    """Bring moments up to date: v ← β2 v + (1 - β2)(g² + 1e-30); overwrites the squares."""
    torch._foreach_add_(squares, EPSILON_GRADIENT)
    torch._foreach_lerp_(moments, squares, weights)


def _update_norm(grad: Tensor, row: Tensor, column: Tensor) -> Tensor:
    """‖u‖ of u = g · row · column, without u: √ Σ row² (g² column²)."""
    return (grad.square() @ column.square()).mul_(row).dot(row).sqrt_()


def _step_sizes(
    params: list[Tensor], update_norms: list[Tensor], lr: float, shards: dist.ProcessGroup | None
) -> list[Tensor]:
    """-lr · max(1e-3, RMS(θ)) / max(1, RMS(u)) of each parameter, from the norms of the local rows of u."""
    norms = torch.stack(update_norms + _norms([local(p) for p in params]))
    (squares,) = summed([norms.square_()], shards)
    sizes = torch.tensor([p.numel() for p in params], device=squares.device)
    update_rms, param_rms = (squares.view(2, -1) / sizes).sqrt_()
    return list((-lr * param_rms.clamp_(min=EPSILON_PARAMETER) / update_rms.clamp_(min=1.0)).unbind())


def _norms(tensors: list[Tensor]) -> list[Tensor]:
    return list(torch._foreach_norm(tensors)) if tensors else []


def _batches(
    params: list[Tensor], shards: dist.ProcessGroup | None
) -> list[tuple[list[Tensor], list[Tensor]]]:
    """What to update together, whole and factored: all, or on one processor each matrix alone.

    A matrix then stays in the processor's cache from the first look at its gradient to its update.
    """
    whole: list[Tensor] = []
    matrices: list[Tensor] = []
    for parameter in params:
        (matrices if is_factored(parameter) else whole).append(parameter)
    if shards is not None or params[0].device.type != "cpu":
        return [(whole, matrices)]
    alone: list[tuple[list[Tensor], list[Tensor]]] = [([], [matrix]) for matrix in matrices]
    return [(whole, []), *alone] if whole else alone


def _check(parameter: Tensor) -> None:
    if parameter.dtype != torch.float32:
        raise ValueError(f"Adafactor's parameters must be float32, but one is {parameter.dtype}.")
    check_placements(parameter)


def _local_grad(parameter: Tensor) -> Tensor:
    assert parameter.grad is not None
    return local(parameter.grad)
