"""Registers output shapes and gradients of the compiled operators with torch.

torch.compile needs the shapes, and autograd the gradients. The gradient of `dispatch` is `combine` without
weights, and vice versa.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from mnmt_moe_ext import native

_OPERATORS = torch.ops.mnmt_moe_ext


def _route_fake(
    logits: Tensor,
    padding_mask: Tensor,
    bias: Tensor | None,
    choices: Tensor | None,
    seed_and_step: Tensor | None,
    token_ids: Tensor | None,
    top_k: int,
    capacity: int,
    bin_size: int,
    *options: Any,
) -> tuple[Tensor, ...]:
    groups, tokens, num_experts = logits.shape
    weights = logits.new_empty((groups, tokens, top_k))
    gate_means, log_sums = logits.new_empty((groups, num_experts)), logits.new_empty((groups, tokens))
    experts, slots, rows, used_choices = (torch.empty_like(weights, dtype=torch.int32) for _ in range(4))
    filled_or_ends = slots.new_empty(num_experts * (groups if bin_size else 1))
    load, real_tokens = slots.new_empty((groups, num_experts, top_k)), slots.new_empty(groups)
    routed = (weights, gate_means, log_sums, experts, slots, rows, filled_or_ends)
    return *routed, load, used_choices, real_tokens


def _route_backward_fake(
    grad_weights: Tensor | None,
    grad_gate_means: Tensor | None,
    grad_log_sums: Tensor | None,
    logits: Tensor,
    *saved: Any,
) -> Tensor:
    return torch.empty_like(logits, memory_format=torch.contiguous_format)


def _route_setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    _, _, log_sums, _, slots, _, _, _, choices, real_tokens = output
    ctx.save_for_backward(inputs[0], choices, slots, log_sums, real_tokens)
    ctx.set_materialize_grads(False)
    ctx.renormalise = inputs[11]
    ctx.num_options = len(inputs) - 1


def _route_backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
    grad_logits = _OPERATORS.route_backward(*grads[:3], *ctx.saved_tensors, ctx.renormalise)
    return grad_logits, *([None] * ctx.num_options)


def _refuse_second_route_gradient(ctx: Any, grad_grad_logits: Tensor) -> None:
    raise NotImplementedError("`route` can be differentiated once only.")


def _arrange_fake(bins: Tensor, num_bins: int) -> tuple[Tensor, Tensor]:
    return torch.empty_like(bins, memory_format=torch.contiguous_format), bins.new_empty(num_bins)


def _dispatch_fake(tokens: Tensor, rows: Tensor, filled: Tensor, bin_size: int) -> Tensor:
    return tokens.new_empty(filled.shape[0] * bin_size, tokens.shape[1])


def _combine_fake(
    buffers: Tensor, weights: Tensor | None, rows: Tensor, filled: Tensor, bin_size: int
) -> Tensor:
    return buffers.new_empty(rows.shape[0], buffers.shape[1])


def _combine_backward_fake(
    grad: Tensor, buffers: Tensor, weights: Tensor, rows: Tensor, filled: Tensor, bin_size: int
) -> tuple[Tensor, Tensor]:
    return buffers.new_empty(buffers.shape), weights.new_empty(weights.shape)


def _dispatch_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, rows, filled, ctx.bin_size = inputs
    ctx.save_for_backward(rows, filled)


def _dispatch_backward(ctx: Any, grad_buffers: Tensor) -> tuple[Tensor | None, ...]:
    rows, filled = ctx.saved_tensors
    return _OPERATORS.combine(grad_buffers, None, rows, filled, ctx.bin_size), None, None, None


def _combine_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    buffers, weights, rows, filled, ctx.bin_size = inputs
    ctx.save_for_backward(None if weights is None else buffers, weights, rows, filled)


def _combine_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    buffers, weights, rows, filled = ctx.saved_tensors
    if weights is None:
        return _OPERATORS.dispatch(grad, rows, filled, ctx.bin_size), None, None, None, None
    grad_buffers, grad_weights = _OPERATORS.combine_backward(
        grad, buffers, weights, rows, filled, ctx.bin_size
    )
    return grad_buffers, grad_weights, None, None, None


def _refuse_second_combine_gradient(ctx: Any, *grads: Tensor) -> None:
    raise NotImplementedError("`combine` can be differentiated once only.")


def _register() -> None:
    torch.library.register_fake("mnmt_moe_ext::route", _route_fake)
    torch.library.register_fake("mnmt_moe_ext::route_backward", _route_backward_fake)
    torch.library.register_autograd("mnmt_moe_ext::route", _route_backward, setup_context=_route_setup)
    torch.library.register_autograd("mnmt_moe_ext::route_backward", _refuse_second_route_gradient)
    torch.library.register_fake("mnmt_moe_ext::arrange", _arrange_fake)
    torch.library.register_fake("mnmt_moe_ext::dispatch", _dispatch_fake)
    torch.library.register_fake("mnmt_moe_ext::combine", _combine_fake)
    torch.library.register_fake("mnmt_moe_ext::combine_backward", _combine_backward_fake)
    torch.library.register_autograd(
        "mnmt_moe_ext::dispatch", _dispatch_backward, setup_context=_dispatch_setup
    )
    torch.library.register_autograd("mnmt_moe_ext::combine", _combine_backward, setup_context=_combine_setup)
    torch.library.register_autograd("mnmt_moe_ext::combine_backward", _refuse_second_combine_gradient)


if native.COMPILED:
    _register()
