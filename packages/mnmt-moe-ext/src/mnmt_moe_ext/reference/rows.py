"""Layouts, `dispatch` and `combine` as sums over one-hot tensors (Lepikhin et al. 2021, GShard, algorithm 2).

Differentiated by autograd; memory is tokens times rows of the buffers, so for small examples only.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mnmt_moe_ext.layout import Layout, check_bin_size, check_choices
from mnmt_moe_ext.routing import Routing
from mnmt_moe_ext.rows import buffer_shape, check_combine, check_dispatch

NONE = -1


def capacity_layout(routing: Routing, *, bin_size: int | None = None) -> Layout:
    """The same as `mnmt_moe_ext.capacity_layout`."""
    _, bin_size = check_bin_size(routing, bin_size)
    groups, num_experts, _ = routing.load.shape
    group = torch.arange(groups, device=routing.slots.device).view(-1, 1, 1)
    rows = (routing.experts * groups + group) * bin_size + routing.slots
    return Layout(
        rows=rows.masked_fill(routing.slots == NONE, NONE).int(),
        filled=_kept(routing).flatten().int(),
        bin_size=bin_size,
        num_experts=num_experts,
    )


def ragged_layout(routing: Routing) -> Layout:
    """The same as `mnmt_moe_ext.ragged_layout`."""
    check_choices(routing)
    groups, tokens, _ = routing.experts.shape
    kept = _kept(routing)
    first_rows = (kept.flatten().cumsum(0) - kept.flatten()).view_as(kept)
    group = torch.arange(groups, device=routing.slots.device).view(-1, 1, 1)
    rows = first_rows[routing.experts.clamp(min=0), group] + routing.slots
    ends = kept.sum(dim=1).cumsum(0).int()
    return Layout(
        rows=rows.masked_fill(routing.slots == NONE, NONE).int(),
        filled=ends[-1:],
        bin_size=2 * groups * tokens,
        num_experts=routing.load.shape[1],
        ends=ends,
    )


def _kept(routing: Routing) -> Tensor:
    """(experts, groups): how many choices got a slot."""
    experts = routing.experts.masked_fill(routing.slots == NONE, NONE)
    indices = torch.arange(routing.load.shape[1], device=experts.device).view(-1, 1, 1, 1)
    return (experts == indices).sum(dim=(2, 3))


def dispatch(tokens: Tensor, layout: Layout) -> Tensor:
    """The same as `mnmt_moe_ext.dispatch`."""
    check_dispatch(tokens, layout)
    if layout.ends is not None:
        return torch.einsum("gtkr,gtd->rd", _one_hot(layout.rows, layout.bin_size).to(tokens), tokens)
    experts, slots = (one_hot.to(tokens) for one_hot in _experts_and_slots(layout))
    mask = torch.einsum("gtke,gtkc->gtec", experts, slots)
    buffers = torch.einsum("gtec,gtd->egcd", mask, tokens)
    return buffers.reshape(*buffer_shape(layout), tokens.shape[-1])


def combine(outputs: Tensor, weights: Tensor, layout: Layout) -> Tensor:
    """The same as `mnmt_moe_ext.combine`."""
    check_combine(outputs, weights, layout)
    rows = outputs.to(weights.dtype)
    if layout.ends is not None:
        one_hot = _one_hot(layout.rows, layout.bin_size).to(weights)
        return torch.einsum("gtk,gtkr,rd->gtd", weights, one_hot, rows).to(outputs.dtype)
    experts, slots = (one_hot.to(weights) for one_hot in _experts_and_slots(layout))
    shares = torch.einsum("gtk,gtke,gtkc->gtec", weights, experts, slots)
    bins = rows.view(layout.num_experts, layout.rows.shape[0], layout.bin_size, outputs.shape[-1])
    return torch.einsum("gtec,egcd->gtd", shares, bins).to(outputs.dtype)


def _experts_and_slots(layout: Layout) -> tuple[Tensor, Tensor]:
    """One-hot (groups, tokens, 2, experts) and (groups, tokens, 2, bin_size); 0 for no row."""
    groups = layout.rows.shape[0]
    expert = (layout.rows // layout.bin_size // groups).masked_fill(layout.rows == NONE, NONE)
    slot = (layout.rows % layout.bin_size).masked_fill(layout.rows == NONE, NONE)
    return _one_hot(expert, layout.num_experts), _one_hot(slot, layout.bin_size)


def _one_hot(indices: Tensor, size: int) -> Tensor:
    """(..., size) bool; nowhere True for an index of -1."""
    return indices.unsqueeze(-1) == torch.arange(size, device=indices.device)
