"""Routes of tokens through experts and back: ours, one-hot einsums, and pipelines that sort choices.

Each route maps x (tokens, d_model) and logits (tokens, experts) to (tokens, d_model) with the experts that it
gets: on bins, (experts, rows, d_model) to the same shape, or on rows that lie expert by expert, with `ends`
(experts,). Ours computes the auxiliary loss too, the others do not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_moe_ext import combine, dispatch, route

BinExperts = Callable[[Tensor], Tensor]
RowExperts = Callable[[Tensor, Tensor], Tensor]


def ours_in_bins(
    x: Tensor, logits: Tensor, experts: BinExperts, *, capacity: int, num_groups: int = 1
) -> Tensor:
    """Route with the extension, with as many rows for each expert."""
    groups = torch.unflatten(logits, 0, (num_groups, -1))
    routing, layout = route(groups, layout="capacity", capacity=capacity)
    outputs = experts(dispatch(torch.unflatten(x, 0, (num_groups, -1)), layout))
    return combine(outputs, routing.weights, layout).flatten(0, 1)


def ours_in_rows(
    x: Tensor, logits: Tensor, experts: RowExperts, *, capacity: int | None, num_groups: int = 1
) -> Tensor:
    """Route with the extension, with each expert's rows after those of the expert before."""
    routing, layout = route(torch.unflatten(logits, 0, (num_groups, -1)), capacity=capacity)
    assert layout.ends is not None
    outputs = experts(dispatch(torch.unflatten(x, 0, (num_groups, -1)), layout), layout.ends)
    return combine(outputs, routing.weights, layout).flatten(0, 1)


def einsum(x: Tensor, logits: Tensor, experts: BinExperts, *, capacity: int, num_groups: int = 1) -> Tensor:
    """Route with masks of (groups, tokens, experts, capacity) (Lepikhin et al. 2021, GShard, alg. 1 and 2).

    A mask has tokens · experts · capacity elements in a group, so all of them grow with the size of a group.
    """
    groups = (num_groups, -1)
    shares = combining_tensor(torch.unflatten(logits, 0, groups), capacity).to(x.dtype)
    buffers = torch.einsum("gsec,gsd->egcd", (shares != 0).to(x.dtype), torch.unflatten(x, 0, groups))
    outputs = torch.unflatten(experts(buffers.flatten(1, 2)), 1, groups)
    return torch.einsum("gsec,egcd->gsd", shares, outputs).flatten(0, 1)


def combining_tensor(logits: Tensor, capacity: int) -> Tensor:
    """Return each token's weights at its slots and 0 elsewhere, (groups, tokens, experts, capacity)."""
    num_experts = logits.shape[-1]
    gates = logits.softmax(dim=-1)
    first = F.one_hot(gates.argmax(dim=-1), num_experts)
    second = F.one_hot(gates.masked_fill(first.bool(), -1).argmax(dim=-1), num_experts)
    first_slots = first.sum(dim=1, keepdim=True).clamp(max=capacity)
    slots = (first.cumsum(dim=1) - first, second.cumsum(dim=1) - second + first_slots)
    total = (gates * (first + second)).sum(dim=-1, keepdim=True) + 1e-9
    shares: list[Tensor] = []
    for choice, slot in zip((first, second), slots, strict=True):
        with_slot = choice * (slot < capacity)
        slot_of_token = F.one_hot((slot * with_slot).sum(dim=-1), capacity).to(gates.dtype)
        shares.append(torch.einsum("gse,gsc->gsec", gates / total * with_slot, slot_of_token))
    return shares[0] + shares[1]


def sorted_index_add(x: Tensor, logits: Tensor, experts: RowExperts) -> Tensor:
    """Sort choices by expert; weight the outputs in place and add them to their tokens."""
    weights, order, ends = sorted_choices(logits)
    tokens = order // 2
    outputs = experts(x.index_select(0, tokens), ends)
    outputs = outputs * weights.flatten()[order].to(x.dtype).unsqueeze(-1)
    return torch.zeros_like(x).index_add(0, tokens, outputs)


def sorted_gather(x: Tensor, logits: Tensor, experts: RowExperts) -> Tensor:
    """Sort choices by expert; bring the outputs back into token order, then weight and sum them."""
    weights, order, ends = sorted_choices(logits)
    outputs = experts(x.index_select(0, order // 2), ends)
    back = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))
    pairs = outputs.index_select(0, back).view(len(x), 2, -1)
    return torch.bmm(weights.to(x.dtype).unsqueeze(1), pairs).squeeze(1)


def sorted_choices(logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return weights (tokens, 2), the choices (2 · tokens,) by expert, and each expert's end among them."""
    weights, indices = logits.softmax(dim=-1).topk(2, dim=-1)
    weights = weights / weights.sum(dim=-1, keepdim=True)
    experts, order = indices.flatten().sort()
    numbers = torch.arange(logits.shape[-1], device=logits.device)
    return weights, order, torch.searchsorted(experts, numbers, right=True, out_int32=True)


def identity_experts(buffers: Tensor, *_: Any) -> Tensor:
    """Return the inputs."""
    return buffers


def scaled_experts(factors: Tensor, buffers: Tensor, ends: Tensor | None = None) -> Tensor:
    """Multiply the inputs by the expert's factor (experts,), which tells the experts apart."""
    if ends is None:
        return buffers * factors.view(-1, 1, 1)
    numbers = torch.arange(len(buffers), device=ends.device, dtype=ends.dtype)
    expert = torch.searchsorted(ends, numbers, right=True).clamp(max=len(factors) - 1)
    return buffers * factors[expert].unsqueeze(-1)
