"""Layouts, `dispatch` and `combine` as sums over one-hot tensors.

They follow Lepikhin et al. 2021 (GShard), algorithm 2. Autograd differentiates them. They need memory
for tokens times rows of the buffers, so they suit small examples.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mnmt_moe_ext.layout import Layout, check_bin_size
from mnmt_moe_ext.routing import Routing
from mnmt_moe_ext.rows import buffer_shape, check_combine, check_dispatch

NONE = -1


def capacity_layout(routing: Routing, *, bin_size: int | None = None) -> Layout:
    """Return a layout with a bin of `bin_size` rows for each expert and group, by default the capacity."""
    groups, num_experts, _ = routing.load.shape
    bin_size = check_bin_size(bin_size, routing.capacity, groups=groups, num_experts=num_experts)
    group = torch.arange(groups, device=routing.slots.device).view(-1, 1, 1)
    rows = (routing.experts * groups + group) * bin_size + routing.slots
    return Layout(
        rows=rows.masked_fill(routing.slots == NONE, NONE).int(),
        filled=_rows_per_bin(routing).flatten().int(),
        bin_size=bin_size,
        num_experts=num_experts,
    )


def ragged_layout(routing: Routing) -> Layout:
    """Return a layout in which each expert's rows follow the previous expert's."""
    groups = len(routing.experts)
    counts = _rows_per_bin(routing)
    first_rows = (counts.flatten().cumsum(0) - counts.flatten()).view_as(counts)
    group = torch.arange(groups, device=routing.slots.device).view(-1, 1, 1)
    rows = first_rows[routing.experts.clamp(min=0), group] + routing.slots
    ends = counts.sum(dim=1).cumsum(0).int()
    return Layout(
        rows=rows.masked_fill(routing.slots == NONE, NONE).int(),
        filled=ends[-1:],
        bin_size=routing.experts.numel(),
        num_experts=routing.load.shape[1],
        ends=ends,
    )


def _rows_per_bin(routing: Routing) -> Tensor:
    """Return how many choices have a slot, (experts, groups)."""
    experts = routing.experts.masked_fill(routing.slots == NONE, NONE)
    indices = torch.arange(routing.load.shape[1], device=experts.device).view(-1, 1, 1, 1)
    return (experts == indices).sum(dim=(2, 3))


def arrange(bins: Tensor, num_bins: int) -> tuple[Tensor, Tensor]:
    """Compute `mnmt_moe_ext.rows.arrange` in plain torch."""
    in_bins = _one_hot(bins.flatten(), num_bins)
    ends = in_bins.sum(dim=0).cumsum(0)
    before = torch.cat([ends.new_zeros(1), ends[:-1]]) + in_bins.cumsum(0) - 1
    rows = (before * in_bins).sum(dim=1).masked_fill(bins.flatten() == NONE, NONE)
    return rows.view_as(bins).int(), ends.int()


def dispatch(tokens: Tensor, layout: Layout) -> Tensor:
    """Compute `mnmt_moe_ext.dispatch` in plain torch."""
    check_dispatch(tokens, layout)
    if layout.ends is not None:
        buffers = torch.einsum("gtkr,gtd->rd", _one_hot(layout.rows, layout.bin_size).to(tokens), tokens)
        return _clear_empty_rows(buffers, layout)
    experts, slots = (one_hot.to(tokens) for one_hot in _experts_and_slots(layout))
    mask = torch.einsum("gtke,gtkc->gtec", experts, slots)
    buffers = torch.einsum("gtec,gtd->egcd", mask, tokens)
    return _clear_empty_rows(buffers.reshape(*buffer_shape(layout), tokens.shape[-1]), layout)


def combine(outputs: Tensor, weights: Tensor, layout: Layout) -> Tensor:
    """Compute `mnmt_moe_ext.combine` in plain torch."""
    check_combine(outputs, weights, layout)
    rows = _clear_empty_rows(outputs.to(weights.dtype), layout)
    if layout.ends is not None:
        one_hot = _one_hot(layout.rows, layout.bin_size).to(weights)
        return torch.einsum("gtk,gtkr,rd->gtd", weights, one_hot, rows).to(outputs.dtype)
    experts, slots = (one_hot.to(weights) for one_hot in _experts_and_slots(layout))
    shares = torch.einsum("gtk,gtke,gtkc->gtec", weights, experts, slots)
    bins = rows.view(layout.num_experts, layout.rows.shape[0], layout.bin_size, outputs.shape[-1])
    return torch.einsum("gtec,egcd->gtd", shares, bins).to(outputs.dtype)


def _clear_empty_rows(buffers: Tensor, layout: Layout) -> Tensor:
    """Return the buffers with 0 in the rows without a token, and no gradient from there.

    Both are undefined in experts' outputs: NaN there times the 0 of a one-hot tensor would be NaN.
    """
    slots = torch.arange(layout.bin_size, device=buffers.device)
    empty = slots >= layout.filled.unsqueeze(-1)
    return buffers.masked_fill(empty.view(*buffers.shape[:-1], 1), 0)


def _experts_and_slots(layout: Layout) -> tuple[Tensor, Tensor]:
    """Return the expert and the slot of each choice, one-hot; all 0 for no row.

    They are (groups, tokens, top_k, experts) and (groups, tokens, top_k, bin_size).
    """
    groups = layout.rows.shape[0]
    expert = (layout.rows // layout.bin_size // groups).masked_fill(layout.rows == NONE, NONE)
    slot = (layout.rows % layout.bin_size).masked_fill(layout.rows == NONE, NONE)
    return _one_hot(expert, layout.num_experts), _one_hot(slot, layout.bin_size)


def _one_hot(indices: Tensor, size: int) -> Tensor:
    """Return a bool tensor (..., size), True at each index and nowhere for an index of -1."""
    return indices.unsqueeze(-1) == torch.arange(size, device=indices.device)
