"""The rows of the experts' buffers that each token takes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from mnmt_moe_ext import native
from mnmt_moe_ext.routing import Routing

MAX_ROWS = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The rows of the buffers that the tokens of (groups, tokens) take.

    The buffers consist of bins of `bin_size` rows, each filled from its start. A capacity layout has a bin
    for each expert and group, in the order (experts, groups, bin_size). A ragged layout has one bin, in which
    each expert's rows follow the previous expert's.
    """

    rows: Tensor
    """(groups, tokens, top_k) int32: the row of each choice; -1 without a row."""
    filled: Tensor
    """(bins,) int32: the number of rows with a token, at the start of each bin."""
    bin_size: int
    """Rows of a bin."""
    num_experts: int
    """Experts of the layer."""
    ends: Tensor | None = None
    """(experts,) int32: the row after each expert's last, in a ragged layout; None in a capacity layout."""


def capacity_layout(routing: Routing, *, bin_size: int | None = None) -> Layout:
    """Lay out buffers with a bin of the same size for each expert and group, as GShard does.

    The token in slot s of expert e in group g takes the row (e · groups + g) · bin_size + s.

    Args:
        routing: The result of `top_k_gate` with a capacity.
        bin_size: Rows of a bin, at least the capacity, which is the default. A larger bin gives all processes
            the same shapes if their capacities differ.

    Returns:
        The layout of buffers (experts, groups · bin_size, d_model).

    Raises:
        ValueError: `routing` has no capacity, or `bin_size` is below it or makes too many rows for int32.
        RuntimeError: The compiled operators for the device are missing, or, on the CPU, the routing
            contradicts its load.
    """
    groups, num_experts, _ = routing.load.shape
    bin_size = check_bin_size(bin_size, routing.capacity, groups=groups, num_experts=num_experts)
    native.require(routing.slots.device)
    rows, filled = torch.ops.mnmt_moe_ext.capacity_layout(
        routing.experts, routing.slots, routing.load, routing.capacity, bin_size
    )
    return Layout(rows=rows, filled=filled, bin_size=bin_size, num_experts=num_experts)


def ragged_layout(routing: Routing) -> Layout:
    """Lay out each expert's rows directly after the previous expert's, for a grouped matrix product.

    The rows of an expert are in the order of groups, and within a group in the order of slots. There are rows
    for all choices of every token; rows after the last expert's end are unused.

    Args:
        routing: The result of `top_k_gate`, with a capacity or without.

    Returns:
        The layout of buffers (groups · tokens · top_k, d_model), with `ends`.

    Raises:
        ValueError: There are too many rows for int32.
        RuntimeError: The compiled operators for the device are missing, or, on the CPU, the routing
            contradicts its load.
    """
    check_num_choices(routing)
    native.require(routing.slots.device)
    rows, ends = torch.ops.mnmt_moe_ext.ragged_layout(
        routing.experts,
        routing.slots,
        routing.load,
        MAX_ROWS if routing.capacity is None else min(routing.capacity, MAX_ROWS),
    )
    return Layout(
        rows=rows,
        filled=ends[-1:],
        bin_size=routing.experts.numel(),
        num_experts=routing.load.shape[1],
        ends=ends,
    )


def check_bin_size(bin_size: int | None, capacity: int | None, *, groups: int, num_experts: int) -> int:
    """Return the bin size of a capacity layout, by default the capacity.

    Raises:
        ValueError: There is no capacity, or `bin_size` is below it or makes too many rows for int32.
    """
    if capacity is None:
        raise ValueError("`capacity` must not be None for a capacity layout; a ragged layout needs none.")
    if bin_size is None:
        bin_size = capacity
    if bin_size < capacity:
        raise ValueError(f"`bin_size` must be at least the capacity ({capacity}), but is {bin_size}.")
    if num_experts * groups * bin_size > MAX_ROWS:
        raise ValueError(
            "`bin_size` times experts times groups must be less than 2³¹, but is "
            f"{bin_size} · {num_experts} · {groups}."
        )
    return bin_size


def check_num_choices(routing: Routing) -> None:
    """Raise ValueError if there are too many choices for a ragged layout."""
    if (num_choices := routing.experts.numel()) > MAX_ROWS:
        raise ValueError(
            f"`routing` must have less than 2³¹ choices for a ragged layout, but has {num_choices}."
        )
