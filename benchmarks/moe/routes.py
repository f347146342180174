"""Routes of tokens through experts and back: ours, one-hot einsums, and pipelines that sort choices.

The sorted pipelines are compiled as well (`compiled`). With experts in float32 this is `sorted_bins`, whose
products are a padded bmm, since torch's compiler takes grouped_mm only in bfloat16.

Each route maps x (tokens, d_model) and logits (tokens, experts) to (tokens, d_model) with the experts that it
gets: on bins, (experts, rows, d_model) to the same shape, or on rows that lie expert by expert, with `ends`
(experts,). Ours computes the auxiliary loss too, the others do not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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
    return weighted_pairs(outputs.index_select(0, inverse(order)), weights)


def sorted_bins(x: Tensor, logits: Tensor, experts: BinExperts, *, capacity: int) -> Tensor:
    """Sort choices by expert into bins of `capacity` rows, which the busiest expert must not exceed.

    The rows after an expert's own are those of the next experts; their outputs are not read.
    """
    weights, order, ends = sorted_choices(logits)
    starts = F.pad(ends, (1, 0))[:-1]
    places = (starts[:, None] + torch.arange(capacity, device=x.device)).clamp(max=len(order) - 1)
    outputs = experts(x[order[places] // 2])
    back = inverse(order)
    expert = torch.searchsorted(ends, back, right=True)
    rows = back - starts[expert] + expert * capacity
    return weighted_pairs(outputs.flatten(0, 1).index_select(0, rows), weights)


def compiled(route: Callable[..., Tensor], backend: str) -> Callable[..., Tensor]:
    """Return the route as torch compiles it for the shapes of each call, in one piece.

    The first call compiles. Its results stay on disk, so that it is shorter when the program runs again.
    """
    whole: Callable[..., Tensor] = torch.compile(route, dynamic=False, fullgraph=True, backend=backend)
    return whole


def weighted_pairs(outputs: Tensor, weights: Tensor) -> Tensor:
    """Return the weighted sum of each token's two outputs (2 �� tokens, d_model), in the order of tokens."""
    return torch.bmm(weights.to(outputs.dtype).unsqueeze(1), torch.unflatten(outputs, 0, (-1, 2))).squeeze(1)


def inverse(order: Tensor) -> Tensor:
    """Return the inverse of a permutation."""
    return torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))


def sorted_choices(logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return weights (tokens, 2), the choices (2 · tokens,) by expert, and each expert's end among them."""
    weights, indices = logits.softmax(dim=-1).topk(2, dim=-1)
    weights = weights / weights.sum(dim=-1, keepdim=True)
    experts, order = indices.flatten().sort()
    numbers = torch.arange(logits.shape[-1], device=logits.device)
    return weights, order, torch.searchsorted(experts, numbers, right=True, out_int32=True)


def gated_experts(wi: Tensor, wo: Tensor, buffers: Tensor, ends: Tensor | None = None) -> Tensor:
    """Apply wo_e (SiLU(a) �� b), a and b the halves of wi_e x: to bins by bmm, to rows by grouped_mm."""
    product = torch.bmm if ends is None else partial(F.grouped_mm, offs=ends)
    a, b = product(buffers, wi).chunk(2, dim=-1)
    return product(F.silu(a) * b, wo)


def largest_load(logits: Tensor) -> int:
    """Return the choices of the busiest expert, rounded up to a multiple of four."""
    _, _, ends = sorted_choices(logits.detach())
    return -(-int(ends.diff(prepend=ends.new_zeros(1)).max()) // 4) * 4


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
