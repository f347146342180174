"""Output shapes and gradients of the layouts, `dispatch` and `combine`.

The gradient of `dispatch` is `combine` without weights, and the other way around.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_OPERATORS = torch.ops.mnmt_moe_ext


def _capacity_layout_fake(
    experts: Tensor, slots: Tensor, load: Tensor, capacity: int, bin_size: int
) -> tuple[Tensor, Tensor]:
    groups, num_experts, _ = load.shape
    return slots.new_empty(slots.shape), load.new_empty(num_experts * groups)


def _ragged_layout_fake(experts: Tensor, slots: Tensor, load: Tensor, capacity: int) -> tuple[Tensor, Tensor]:
    return slots.new_empty(slots.shape), load.new_empty(load.shape[1])


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


def _differentiated_twice(ctx: Any, *grads: Tensor) -> None:
    raise NotImplementedError("`combine` can be differentiated once only.")


torch.library.register_fake("mnmt_moe_ext::capacity_layout", _capacity_layout_fake)
torch.library.register_fake("mnmt_moe_ext::ragged_layout", _ragged_layout_fake)
torch.library.register_fake("mnmt_moe_ext::dispatch", _dispatch_fake)
torch.library.register_fake("mnmt_moe_ext::combine", _combine_fake)
torch.library.register_fake("mnmt_moe_ext::combine_backward", _combine_backward_fake)
torch.library.register_autograd("mnmt_moe_ext::dispatch", _dispatch_backward, setup_context=_dispatch_setup)
torch.library.register_autograd("mnmt_moe_ext::combine", _combine_backward, setup_context=_combine_setup)
torch.library.register_autograd("mnmt_moe_ext::combine_backward", _differentiated_twice)
