"""What torch has to know about the compiled operators beside their kernels: output shapes and gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_OPERATORS = torch.ops.mnmt_moe_ext


def _top2_select_fake(logits: Tensor, padding_mask: Tensor) -> tuple[Tensor, Tensor]:
    gate_dtype = torch.float64 if logits.dtype == torch.float64 else torch.float32
    gates = logits.new_empty(logits.shape, dtype=gate_dtype)
    return gates, logits.new_empty((*logits.shape[:2], 2), dtype=torch.int32)


def _top2_gate_fake(
    logits: Tensor,
    padding_mask: Tensor,
    draws: Tensor | None,
    capacity: int,
    threshold: float,
    renormalise_after: bool,
) -> tuple[Tensor, ...]:
    gates, choices = _top2_select_fake(logits, padding_mask)
    experts = torch.empty_like(choices)
    slots = torch.empty_like(choices)
    return gates.new_empty(choices.shape), gates.new_empty(()), experts, slots, gates, choices


def _top2_gate_backward_fake(
    grad_weights: Tensor,
    grad_auxiliary_loss: Tensor,
    gates: Tensor,
    choices: Tensor,
    slots: Tensor,
    renormalise_after: bool,
) -> Tensor:
    return torch.empty_like(gates)


def _top2_select_setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    gates, _ = output
    ctx.save_for_backward(gates)
    ctx.logits_dtype = inputs[0].dtype


def _top2_select_backward(ctx: Any, grad_gates: Tensor, grad_choices: None) -> tuple[Tensor, None]:
    (gates,) = ctx.saved_tensors
    grad_logits = gates * (grad_gates - (gates * grad_gates).sum(dim=-1, keepdim=True))
    return grad_logits.to(ctx.logits_dtype), None


def _top2_gate_setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    _, _, _, slots, gates, choices = output
    ctx.save_for_backward(gates, choices, slots)
    ctx.mark_non_differentiable(gates)
    ctx.logits_dtype = inputs[0].dtype
    ctx.renormalise_after = inputs[5]


def _top2_gate_backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
    grad_weights, grad_auxiliary_loss, *_ = grads
    gates, choices, slots = ctx.saved_tensors
    grad_logits = _OPERATORS.top2_gate_backward(
        grad_weights, grad_auxiliary_loss, gates, choices, slots, ctx.renormalise_after
    )
    return grad_logits.to(ctx.logits_dtype), None, None, None, None, None


def _differentiated_twice(ctx: Any, grad_grad_logits: Tensor) -> None:
    raise NotImplementedError("`top2_gate` can be differentiated once only.")


torch.library.register_fake("mnmt_moe_ext::top2_select", _top2_select_fake)
torch.library.register_fake("mnmt_moe_ext::top2_gate", _top2_gate_fake)
torch.library.register_fake("mnmt_moe_ext::top2_gate_backward", _top2_gate_backward_fake)
torch.library.register_autograd(
    "mnmt_moe_ext::top2_select", _top2_select_backward, setup_context=_top2_select_setup
)
torch.library.register_autograd(
    "mnmt_moe_ext::top2_gate", _top2_gate_backward, setup_context=_top2_gate_setup
)
torch.library.register_autograd("mnmt_moe_ext::top2_gate_backward", _differentiated_twice)


def top2_select(logits: Tensor, padding_mask: Tensor) -> tuple[Tensor, Tensor]:
    """The compiled `reference.select_top2`, on the CPU or a GPU."""
    gates, choices = _OPERATORS.top2_select(logits, padding_mask)
    return gates, choices
