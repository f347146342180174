"""The arguments of layouts, `dispatch` and `combine`, checked."""

from __future__ import annotations

import torch
from torch import Tensor

from mnmt_moe_ext.layout import Layout
from mnmt_moe_ext.routing import Routing

ELEMENT_DTYPES = (torch.float32, torch.bfloat16, torch.float64)
MAX_ROWS = 2**31 - 1


def check_bin_size(routing: Routing, bin_size: int | None) -> tuple[int, int]:
    """The capacity and the bin size of a capacity layout; raises ValueError naming what is wrong."""
    if routing.capacity is None:
        raise ValueError(
            "`routing` must have a capacity for a capacity layout, but has None; `ragged_layout` needs none."
        )
    if bin_size is None:
        bin_size = routing.capacity
    if bin_size < routing.capacity:
        raise ValueError(f"`bin_size` must be at least the capacity ({routing.capacity}), but is {bin_size}.")
    groups, num_experts, _ = routing.load.shape
    if num_experts * groups * bin_size > MAX_ROWS:
        raise ValueError(
            "`bin_size` times experts times groups must be less than 2³¹, but is "
            f"{bin_size} · {num_experts} · {groups}."
        )
    return routing.capacity, bin_size


def check_choices(routing: Routing) -> None:
    """Raise ValueError if there are too many choices for a ragged layout."""
    groups, tokens, _ = routing.experts.shape
    if 2 * groups * tokens > MAX_ROWS:
        raise ValueError(
            f"`routing` must have less than 2³⁰ tokens for a ragged layout, but has {groups * tokens}."
        )


def buffer_shape(layout: Layout) -> tuple[int, ...]:
    """(experts, groups · bin_size) of a capacity layout, (rows,) of a ragged one."""
    if layout.ends is not None:
        return (layout.bin_size,)
    return (layout.num_experts, layout.filled.shape[0] // layout.num_experts * layout.bin_size)


def check_dispatch(tokens: Tensor, layout: Layout) -> None:
    """Raise ValueError or TypeError naming the argument, what it must be and what it is."""
    _check_elements("tokens", tokens, layout)
    expected = tuple(layout.rows.shape[:2])
    if tokens.dim() != 3 or tuple(tokens.shape[:2]) != expected:
        raise ValueError(
            f"`tokens` must be (groups, tokens, d_model) = ({expected[0]}, {expected[1]}, d_model) "
            f"for `layout`, but is {tuple(tokens.shape)}."
        )


def check_combine(outputs: Tensor, weights: Tensor, layout: Layout) -> None:
    """Raise ValueError or TypeError naming the argument, what it must be and what it is."""
    _check_elements("outputs", outputs, layout)
    expected = buffer_shape(layout)
    if outputs.dim() != len(expected) + 1 or tuple(outputs.shape[:-1]) != expected:
        names = "rows, d_model" if layout.ends is not None else "experts, rows, d_model"
        sizes = ", ".join(str(size) for size in expected)
        raise ValueError(
            f"`outputs` must be ({names}) = ({sizes}, d_model) for `layout`, but is {tuple(outputs.shape)}."
        )
    _check_weights(weights, outputs, layout)


def _check_elements(name: str, tensor: Tensor, layout: Layout) -> None:
    if tensor.dtype not in ELEMENT_DTYPES:
        raise TypeError(f"`{name}` must be float32, bfloat16 or float64, but is {tensor.dtype}.")
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
            f"`weights` must be (groups, tokens, 2) = {expected} for `layout`, but is {tuple(weights.shape)}."
        )


def _check_device(name: str, tensor: Tensor, layout: Layout) -> None:
    if tensor.device != layout.rows.device:
        raise ValueError(
            f"`{name}` must be on {layout.rows.device} like `layout`, but is on {tensor.device}."
        )
