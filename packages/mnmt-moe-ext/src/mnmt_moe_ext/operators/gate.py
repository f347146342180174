"""Output shapes and gradients of the gate's operators."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def _gate_dtype(logits: Tensor) -> torch.dtype:
    return torch.float64 if logits.dtype == torch.float64 else torch.float32


def _top2_gate_fake(logits: Tensor, padding_mask: Tensor, *options: Any) -> tuple[Tensor, ...]:
    groups, tokens, num_experts = logits.shape
    weights = logits.new_empty((groups, tokens, 2), dtype=_gate_dtype(logits))
    experts, slots, choices = (torch.empty_like(weights, dtype=torch.int32) for _ in range(3))
    load = experts.new_empty((groups, num_experts, 2))
    return weights, weights.new_empty(()), experts, slots, load, choices, weights.new_empty((groups, tokens))


def _top2_gate_backward_fake(
    grad_weights: Tensor,
    grad_auxiliary_loss: Tensor,
    logits: Tensor,
    choices: Tensor,
    slots: Tensor,
    log_sums: Tensor,
    renormalise_after: bool,
) -> Tensor:
    return torch.empty_like(logits, memory_format=torch.contiguous_format)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    logits, *_, renormalise_after = inputs
    _, _, _, slots, _, choices, log_sums = output
    ctx.save_for_backward(logits, choices, slots, log_sums)
    ctx.mark_non_differentiable(log_sums)
    ctx.renormalise_after = renormalise_after


def _backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
    grad_weights, grad_auxiliary_loss, *_ = grads
    grad_logits = torch.ops.mnmt_moe_ext.top2_gate_backward(
        grad_weights, grad_auxiliary_loss, *ctx.saved_tensors, ctx.renormalise_after
    )
    return grad_logits, *([None] * 9)


def _differentiated_twice(ctx: Any, grad_grad_logits: Tensor) -> None:
    raise NotImplementedError("`top2_gate` can be differentiated once only.")


torch.library.register_fake("mnmt_moe_ext::top2_gate", _top2_gate_fake)
torch.library.register_fake("mnmt_moe_ext::top2_gate_backward", _top2_gate_backward_fake)
torch.library.register_autograd("mnmt_moe_ext::top2_gate", _backward, setup_context=_setup)
torch.library.register_autograd("mnmt_moe_ext::top2_gate_backward", _differentiated_twice)
