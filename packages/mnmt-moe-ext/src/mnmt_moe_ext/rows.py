"""Moving tokens to the experts' buffers and back."""

from __future__ import annotations

import torch
from torch import Tensor

from mnmt_moe_ext import native
from mnmt_moe_ext.layout import Layout
from mnmt_moe_ext.routing import Routing
from mnmt_moe_ext.row_arguments import (
    MAX_ROWS,
    buffer_shape,
    check_bin_size,
    check_choices,
    check_combine,
    check_dispatch,
)


def capacity_layout(routing: Routing, *, bin_size: int | None = None) -> Layout:
    """A bin for each expert and group, each of the same size, as GShard's experts take them.

    The token in slot s of expert e in group g has the row (e · groups + g) · bin_size + s.

    Args:
        routing: As `top2_gate` gives it, with a capacity.
        bin_size: Rows of a bin, at least the capacity, which is the default. More of them give every process
            the same shapes where capacities differ.

    Returns:
        The layout of buffers (experts, groups · bin_size, d_model).

    Raises:
        ValueError: `routing` has no capacity, or `bin_size` is below it or makes too many rows for int32.
        RuntimeError: The compiled operators for the device are missing, or, on the CPU, the routing
            contradicts its load.
    """
    capacity, bin_size = check_bin_size(routing, bin_size)
    native.require(routing.slots.device)
    rows, filled = torch.ops.mnmt_moe_ext.capacity_layout(
        routing.experts, routing.slots, routing.load, capacity, bin_size
    )
    return Layout(rows=rows, filled=filled, bin_size=bin_size, num_experts=routing.load.shape[1])


def ragged_layout(routing: Routing) -> Layout:
    """Each expert's rows right after those of the expert before, as a grouped matrix product takes them.

    Within an expert the rows are in the order of groups, and within a group in the order of slots. There are
    rows for two choices of every token; those after the last expert's end are free.

    Args:
        routing: As `top2_gate` gives it, with a capacity or without.

    Returns:
        The layout of buffers (2 · groups · tokens, d_model), with `ends`.

    Raises:
        ValueError: There are too many rows for int32.
        RuntimeError: The compiled operators for the device are missing, or, on the CPU, the routing
            contradicts its load.
    """
    check_choices(routing)
    native.require(routing.slots.device)
    rows, ends = torch.ops.mnmt_moe_ext.ragged_layout(
        routing.experts,
        routing.slots,
        routing.load,
        MAX_ROWS if routing.capacity is None else min(routing.capacity, MAX_ROWS),
    )
    groups, tokens, _ = routing.experts.shape
    return Layout(
        rows=rows,
        filled=ends[-1:],
        bin_size=2 * groups * tokens,
        num_experts=routing.load.shape[1],
        ends=ends,
    )


def dispatch(tokens: Tensor, layout: Layout) -> Tensor:
    """Copy each token to its rows of the experts' buffers.

    Can be differentiated any number of times with respect to `tokens`.

    Args:
        tokens: (groups, tokens, d_model), float32, bfloat16 or float64.
        layout: Of the same groups and tokens.

    Returns:
        (experts, groups · bin_size, d_model) for a capacity layout, (2 · groups · tokens, d_model) for a
        ragged one; rows without a token are 0.

    Raises:
        TypeError: `tokens` has another dtype.
        ValueError: `tokens` has another shape or is on another device than `layout`.
        RuntimeError: The compiled operators for the device are missing, or `tokens` are float64 on a GPU.
    """
    check_dispatch(tokens, layout)
    native.require(tokens.device)
    buffers: Tensor = torch.ops.mnmt_moe_ext.dispatch(
        tokens.flatten(0, 1), layout.rows.flatten(0, 1), layout.filled, layout.bin_size
    )
    return buffers.view(*buffer_shape(layout), tokens.shape[2])


def combine(outputs: Tensor, weights: Tensor, layout: Layout) -> Tensor:
    """Sum the weighted outputs of each token's experts: Σ_k weights[..., k] · outputs[rows[..., k]].

    A choice without a row counts 0. The sum is in float32, or in float64 for float64 outputs. Can be
    differentiated once, with respect to `outputs` and `weights`.

    Args:
        outputs: What the experts made of the buffers, (experts, groups · bin_size, d_model) for a capacity
            layout, (2 · groups · tokens, d_model) for a ragged one; float32, bfloat16 or float64.
        weights: (groups, tokens, 2) float32, float64 for float64 outputs: the routing's.
        layout: With which the buffers were dispatched.

    Returns:
        (groups, tokens, d_model) in the dtype of `outputs`.

    Raises:
        TypeError: `outputs` or `weights` has another dtype.
        ValueError: One has another shape or is on another device than `layout`.
        RuntimeError: The compiled operators for the device are missing, or `outputs` are float64 on a GPU.
    """
    check_combine(outputs, weights, layout)
    native.require(outputs.device)
    d_model = outputs.shape[-1]
    summed: Tensor = torch.ops.mnmt_moe_ext.combine(
        outputs.reshape(layout.filled.shape[0] * layout.bin_size, d_model),
        weights.flatten(0, 1),
        layout.rows.flatten(0, 1),
        layout.filled,
        layout.bin_size,
    )
    return summed.view(*layout.rows.shape[:2], d_model)
