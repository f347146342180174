"""Adafactor as the papers' training library has it (Shazeer & Stern 2018, with T5X's choices)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

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

    State is float32. `lr` is relative to the scale of each parameter.
    """

    def __init__(self, params: Iterable[Tensor], lr: float) -> None:
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Update every parameter that has a gradient."""
        loss = closure() if closure is not None else None
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            for p in params:
                self._initialise(p)
            if params:
                self._update(params, group["lr"])
        return loss

    def _initialise(self, parameter: Tensor) -> None:
        state = self.state[parameter]
        if state:
            return
        state["step"] = torch.zeros(())
        if is_factored(parameter):
            rows, columns = parameter.shape
            state["row"] = torch.zeros(rows, device=parameter.device)
            state["column"] = torch.zeros(columns, device=parameter.device)
        else:
            state["v"] = torch.zeros_like(parameter, dtype=torch.float32)

    def _update(self, params: list[Tensor], lr: float) -> None:
        states = [self.state[p] for p in params]
        torch._foreach_add_([state["step"] for state in states], 1)
        weight = float(states[0]["step"]) ** -DECAY
        grads = [p.grad.float() for p in params if p.grad is not None]
        whole = [i for i, p in enumerate(params) if not is_factored(p)]
        updates: list[Tensor] = [torch.empty(0)] * len(params)
        scaled = _whole_updates([grads[i] for i in whole], [states[i]["v"] for i in whole], weight)
        for i, update in zip(whole, scaled, strict=True):
            updates[i] = update
        for i in set(range(len(params))) - set(whole):
            updates[i] = _factored_update(grads[i], states[i], weight)
        _apply(params, updates, lr)


def _whole_updates(grads: list[Tensor], moments: list[Tensor], weight: float) -> list[Tensor]:
    if not grads:
        return []
    squares = torch._foreach_mul(grads, grads)
    torch._foreach_add_(squares, EPSILON_GRADIENT)
    torch._foreach_lerp_(moments, squares, weight)
    return list(torch._foreach_div(grads, torch._foreach_sqrt(moments)))


def _factored_update(grad: Tensor, state: dict[str, Any], weight: float) -> Tensor:
    square = grad.square() + EPSILON_GRADIENT
    state["row"].lerp_(square.mean(dim=1), weight)
    state["column"].lerp_(square.mean(dim=0), weight)
    row = (state["row"] / state["row"].mean()).rsqrt()
    column: Tensor = state["column"].rsqrt()
    update: Tensor = grad * row[:, None] * column[None, :]
    return update


def _apply(params: list[Tensor], updates: list[Tensor], lr: float) -> None:
    """θ ← θ - lr · max(1e-3, RMS(θ)) · u / max(1, RMS(u)), for all parameters at once."""
    root_sizes = torch.tensor([p.numel() ** 0.5 for p in params], device=params[0].device)
    update_rms = torch.stack(list(torch._foreach_norm(updates))) / root_sizes
    param_rms = torch.stack(list(torch._foreach_norm(params))).float() / root_sizes
    scale = -lr * param_rms.clamp(min=EPSILON_PARAMETER) / update_rms.clamp(min=1.0)
    torch._foreach_mul_(updates, list(scale.unbind()))
    torch._foreach_add_(params, [u.to(p.dtype) for u, p in zip(updates, params, strict=True)])
