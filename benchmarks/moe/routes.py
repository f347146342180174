"""Ways to take tokens through experts and back: ours, the one-hot einsums, and the sorted pipelines.

Each maps x (tokens, d_model) and logits (tokens, experts) to (tokens, d_model) with the experts it is given:
on bins, (experts, rows, d_model) to the same shape, or on rows that lie expert by expert, with `ends`
(experts,). Ours computes the auxiliary loss too, the others do not.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_moe_ext import capacity_layout, combine, dispatch, ragged_layout, top2_gate

BinExperts = Callable[[Tensor], Tensor]
RowExperts = Callable[[Tensor, Tensor], Tensor]


def ours_in_bins(x: Tensor, logits: Tensor, experts: BinExperts, *, capacity: int) -> Tensor:
    """The extension's, with as many rows for each expert."""
    routing = top2_gate(logits[None], capacity=capacity)
    layout = capacity_layout(routing)
    return combine(experts(dispatch(x[None], layout)), routing.weights, layout).squeeze(0)


def ours_in_rows(x: Tensor, logits: Tensor, experts: RowExperts, *, capacity: int | None) -> Tensor:
    """The extension's, with each expert's rows after those of the one before."""
    routing = top2_gate(logits[None], capacity=capacity)
    layout = ragged_layout(routing)
    assert layout.ends is not None
    return combine(experts(dispatch(x[None], layout), layout.ends), routing.weights, layout).squeeze(0)


def einsum(x: Tensor, logits: Tensor, experts: BinExperts, *, capacity: int) -> Tensor:
    """Lepikhin et al. 2021 (GShard), algorithms 1 and 2: masks of (tokens, experts, capacity)."""
    shares = combining_tensor(logits, capacity).to(x.dtype)
    buffers = torch.einsum("sec,sd->ecd", (shares != 0).to(x.dtype), x)
    return torch.einsum("sec,ecd->sd", shares, experts(buffers))


def combining_tensor(logits: Tensor, capacity: int) -> Tensor:
    """(tokens, experts, capacity): each token's weights at its slots, 0 elsewhere."""
    num_experts = logits.shape[-1]
    gates = logits.softmax(dim=-1)
    first = F.one_hot(gates.argmax(dim=-1), num_experts)
    second = F.one_hot(gates.masked_fill(first.bool(), -1).argmax(dim=-1), num_experts)
    taken = first.sum(dim=0).clamp(max=capacity)
    slots = (first.cumsum(dim=0) - first, second.cumsum(dim=0) - second + taken)
    total = (gates * (first + second)).sum(dim=-1, keepdim=True) + 1e-9
    shares: list[Tensor] = []
    for choice, slot in zip((first, second), slots, strict=True):
        kept = choice * (slot < capacity)
        slot_of_token = F.one_hot((slot * kept).sum(dim=-1), capacity).to(gates.dtype)
        shares.append(torch.einsum("se,sc->sec", gates / total * kept, slot_of_token))
    return shares[0] + shares[1]


def sorted_index_add(x: Tensor, logits: Tensor, experts: RowExperts) -> Tensor:
    """Choices sorted by expert; outputs weighted where they lie and added to their tokens."""
    weights, order, ends = sorted_choices(logits)
    tokens = order // 2
    outputs = experts(x.index_select(0, tokens), ends)
    outputs = outputs * weights.flatten()[order].to(x.dtype).unsqueeze(-1)
    return torch.zeros_like(x).index_add(0, tokens, outputs)


def sorted_gather(x: Tensor, logits: Tensor, experts: RowExperts) -> Tensor:
    """Choices sorted by expert; outputs brought back into token order, then weighted and summed."""
    weights, order, ends = sorted_choices(logits)
    outputs = experts(x.index_select(0, order // 2), ends)
    back = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))
    pairs = outputs.index_select(0, back).view(len(x), 2, -1)
    return torch.bmm(weights.to(x.dtype).unsqueeze(1), pairs).squeeze(1)


def sorted_choices(logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Weights (tokens, 2), the choices (2 · tokens,) by expert, and each expert's end among them."""
    weights, indices = logits.softmax(dim=-1).topk(2, dim=-1)
    weights = weights / weights.sum(dim=-1, keepdim=True)
    experts, order = indices.flatten().sort()
    numbers = torch.arange(logits.shape[-1], device=logits.device)
    return weights, order, torch.searchsorted(experts, numbers, right=True, out_int32=True)
