"""`arrange` rows of the experts' buffers, `dispatch` tokens to them, and `combine` the outputs."""

from __future__ import annotations

import torch
from torch import Tensor

from mnmt_moe_ext import native
from mnmt_moe_ext.gate_options import FLOAT_DTYPES, check_dtype
from mnmt_moe_ext.layout import Layout


def dispatch(tokens: Tensor, layout: Layout) -> Tensor:
    """Copy each token to its rows of the experts' buffers.

    It can be differentiated any number of times with respect to `tokens`.

    Args:
        tokens: Hidden states (groups, tokens, d_model), float32, bfloat16 or float64.
        layout: The layout of the same groups and tokens.

    Returns:
        Buffers (experts, groups · bin_size, d_model) for a capacity layout, (rows, d_model) for a ragged one,
        with top_k · groups · tokens rows; rows without a token are 0.

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


def arrange(bins: Tensor, num_bins: int) -> tuple[Tensor, Tensor]:
    """Sort numbers by bin, stably, and return the row of each in a ragged buffer.

    Args:
        bins: The bin of each number, int32 of any shape; -1 without a bin.
        num_bins: Number of bins.

    Returns:
        The rows, int32 of the same shape, -1 without a bin; and the row after each bin's last,
        (num_bins,) int32.

    Raises:
        RuntimeError: The compiled operators for the device are missing, or on a CPU a bin does not exist.
    """
    native.require(bins.device)
    rows, ends = torch.ops.mnmt_moe_ext.arrange(bins.flatten(), num_bins)
    return rows.view_as(bins), ends


def combine(outputs: Tensor, weights: Tensor, layout: Layout) -> Tensor:
    """Sum the weighted outputs of each token's experts: Σ_k weights[..., k] · outputs[rows[..., k]].

    A choice without a row counts 0. The sum is in float32, or in float64 for float64 outputs. It can be
    differentiated once, with respect to `outputs` and `weights`.

    Args:
        outputs: The experts' outputs for the buffers, (experts, groups · bin_size, d_model) for a capacity
            layout, (top_k · groups · tokens, d_model) for a ragged one; float32, bfloat16 or float64.
        weights: The weights of the routing, (groups, tokens, top_k), float32, or float64 for float64 outputs.
        layout: The layout with which the tokens were dispatched.

    Returns:
        Hidden states (groups, tokens, d_model) in the dtype of `outputs`.

    Raises:
        TypeError: `outputs` or `weights` has another dtype.
        ValueError: One has another shape or is on another device than `layout`.
        RuntimeError: The compiled operators for the device are missing, or `outputs` are float64 on a GPU.
    """
    check_combine(outputs, weights, layout)
    native.require(outputs.device)
    d_model = outputs.shape[-1]
    combined: Tensor = torch.ops.mnmt_moe_ext.combine(
        outputs.reshape(layout.filled.shape[0] * layout.bin_size, d_model),
        weights.flatten(0, 1),
        layout.rows.flatten(0, 1),
        layout.filled,
        layout.bin_size,
    )
    return combined.view(*layout.rows.shape[:2], d_model)


def check_dispatch(tokens: Tensor, layout: Layout) -> None:
    """Raise ValueError or TypeError that names the argument, the rule and the value."""
    _check_elements("tokens", tokens, layout)
    expected = tuple(layout.rows.shape[:2])
    if tokens.dim() != 3 or tuple(tokens.shape[:2]) != expected:
        raise ValueError(
            f"`tokens` must be (groups, tokens, d_model) = ({expected[0]}, {expected[1]}, d_model) "
            f"for `layout`, but is {tuple(tokens.shape)}."
        )


def check_combine(outputs: Tensor, weights: Tensor, layout: Layout) -> None:
    """Raise ValueError or TypeError that names the argument, the rule and the value."""
    _check_elements("outputs", outputs, layout)
    expected = buffer_shape(layout)
    if outputs.dim() != len(expected) + 1 or tuple(outputs.shape[:-1]) != expected:
        names = "rows, d_model" if layout.ends is not None else "experts, rows, d_model"
        sizes = ", ".join(str(size) for size in expected)
        raise ValueError(
            f"`outputs` must be ({names}) = ({sizes}, d_model) for `layout`, but is {tuple(outputs.shape)}."
        )
    _check_weights(weights, outputs, layout)


def buffer_shape(layout: Layout) -> tuple[int, ...]:
    """Return (experts, groups · bin_size) for a capacity layout, (rows,) for a ragged one."""
    if layout.ends is not None:
        return (layout.bin_size,)
    return (layout.num_experts, layout.filled.shape[0] // layout.num_experts * layout.bin_size)


def _check_elements(name: str, tensor: Tensor, layout: Layout) -> None:
    check_dtype(name, tensor, *FLOAT_DTYPES)
    _check_device(name, tensor, layout)


def _check_weights(weights: Tensor, outputs: Tensor, layout: Layout) -> None:
    dtype = torch.float64 if outputs.dtype == torch.float64 else torch.float32
    if weights.dtype != dtype:
        raise TypeError(
            f"`weights` must be {dtype} for `outputs` of {outputs.dtype}, but is {weights.dtype}."
        )
    _check_device("weights", weights, layout)
    expected = tuple(layout.rows.shape)
    if tuple(weights.shape) != expected:
        raise ValueError(
            f"`weights` must be (groups, tokens, top_k) = {expected} for `layout`, "
            f"but is {tuple(weights.shape)}."
        )


def _check_device(name: str, tensor: Tensor, layout: Layout) -> None:
    if tensor.device != layout.rows.device:
        raise ValueError(
            f"`{name}` must be on {layout.rows.device} like `layout`, but is on {tensor.device}."
        )
