"""The gate in plain torch, step by step."""

from __future__ import annotations

import math
from typing import Unpack

import torch
from torch import Tensor

from mnmt_moe_ext.counter_rng import uniform
from mnmt_moe_ext.gate import operator_bin_size
from mnmt_moe_ext.gate_options import (
    GateKeywords,
    GateOptions,
    Renormalise,
    number_tokens,
)
from mnmt_moe_ext.layout import Layout, LayoutKind
from mnmt_moe_ext.reference.rows import capacity_layout, ragged_layout
from mnmt_moe_ext.routing import Routing

NONE = -1
EPSILON = 1e-9


def top_k_gate(
    logits: Tensor, padding_mask: Tensor | None = None, **options: Unpack[GateKeywords]
) -> Routing:
    """Compute the routing of `mnmt_moe_ext.route`; it can be differentiated any number of times."""
    gate_options = GateOptions(**options)
    return compute_routing(logits, gate_options.check(logits, padding_mask), gate_options)


def compute_routing(logits: Tensor, padding_mask: Tensor, options: GateOptions) -> Routing:
    """Compute the routing of arguments that are checked."""
    logits = logits if logits.dtype == torch.float64 else logits.float()
    # Autograd would multiply the NaNs of padding by 0.
    logits = logits.masked_fill(padding_mask.unsqueeze(-1), 0)
    choices, experts = choose(logits, padding_mask, options)
    gates = logits.softmax(dim=-1).masked_fill(padding_mask.unsqueeze(-1), 0)
    slots = assign_slots(experts, num_experts=logits.shape[-1], capacity=options.capacity)
    real_tokens = (~padding_mask).sum(dim=1)
    return Routing(
        experts=experts,
        slots=slots,
        weights=weigh(gates, choices, slots, options.normaliser),
        gate_means=gates.sum(dim=1) / real_tokens.clamp(min=1).unsqueeze(-1),
        log_sums=logits.logsumexp(dim=-1).masked_fill(padding_mask, 0),
        load=one_hot(experts, logits.shape[-1]).sum(dim=1).transpose(1, 2).int(),
        real_tokens=real_tokens.int(),
        capacity=options.capacity,
    )


def route(
    logits: Tensor,
    padding_mask: Tensor | None = None,
    *,
    layout: LayoutKind = "ragged",
    bin_size: int | None = None,
    **options: Unpack[GateKeywords],
) -> tuple[Routing, Layout]:
    """Compute `mnmt_moe_ext.route` in plain torch: the gate, then the layout."""
    gate_options = GateOptions(**options)
    padding_mask = gate_options.check(logits, padding_mask)
    bin_size = operator_bin_size(layout, bin_size, logits, gate_options)
    routing = compute_routing(logits, padding_mask, gate_options)
    return routing, capacity_layout(routing, bin_size=bin_size) if bin_size else ragged_layout(routing)


def choose(logits: Tensor, padding_mask: Tensor, options: GateOptions) -> tuple[Tensor, Tensor]:
    """Return the choices, and the choices that are kept: (groups, tokens, top_k) int32."""
    choices = options.choices
    if choices is None:
        scores = logits if options.bias is None else logits + options.bias
        choices = largest(scores, padding_mask, options.top_k)
    if options.second_expert_policy == "always" or options.random_key is None:
        return choices, choices
    draws = uniform(options.random_key, number_tokens(options.token_ids, padding_mask))
    keep = keep_second(logits, choices, draws * options.threshold, options.normaliser)
    return choices, torch.stack([choices[..., 0], choices[..., 1].where(keep, NONE)], dim=-1)


def largest(scores: Tensor, padding_mask: Tensor, top_k: int) -> Tensor:
    """Return the choices (groups, tokens, top_k) int32, best first; -1 for padding.

    NaN counts as -infinity.
    """
    comparable = scores.where(~scores.isnan(), -math.inf)
    order = comparable.sort(dim=-1, descending=True, stable=True).indices
    return order[..., :top_k].int().masked_fill(padding_mask.unsqueeze(-1), NONE)


def keep_second(logits: Tensor, choices: Tensor, bounds: Tensor, renormalise: Renormalise) -> Tensor:
    """Return whether bound < g_2 / (g_1 + g_2), or bound < g_2: (groups, tokens) bool.

    It is decided in float64 and without a division, so that rounding does not matter.
    """
    logits = logits.detach().double()
    first, second = gather_choices(logits, choices).unbind(dim=-1)
    competing = torch.stack([first, second], dim=-1) if renormalise == "before" else logits
    peak = competing.amax(dim=-1)
    total = (competing - peak.unsqueeze(-1)).exp().sum(dim=-1)
    return bounds * total < (second - peak).exp()


def assign_slots(experts: Tensor, *, num_experts: int, capacity: int | None) -> Tensor:
    """Assign slots (groups, tokens, top_k) int32 in token order, every choice of a rank before the next rank.

    A choice's position is the number of choices of its rank before it, including dropped ones, plus the
    number of choices of better rank with a slot.
    """
    all_choices = experts.shape[1] * experts.shape[2]
    limit = all_choices if capacity is None else min(capacity, all_choices)
    taken = torch.zeros(1, dtype=torch.int64, device=experts.device)
    positions = []
    for rank in one_hot(experts, num_experts).unbind(dim=2):
        positions.append(((rank.cumsum(dim=1) - rank + taken) * rank).sum(dim=-1))
        taken = (taken + rank.sum(dim=1, keepdim=True)).clamp(max=limit)
    slots = torch.stack(positions, dim=-1).int()
    return slots.masked_fill((experts == NONE) | (slots >= limit), NONE)


def weigh(gates: Tensor, choices: Tensor, slots: Tensor, renormalise: Renormalise) -> Tensor:
    """Return the weights (groups, tokens, top_k): the choices' gates over their sum, 0 without a slot."""
    values = gather_choices(gates, choices)
    with_slot = torch.where(slots != NONE, values, 0)
    if renormalise == "never":
        return with_slot
    summands = with_slot if renormalise == "after" else values
    return with_slot / (summands.sum(dim=-1, keepdim=True) + EPSILON)


def gather_choices(values: Tensor, choices: Tensor) -> Tensor:
    """Return each choice's value, (groups, tokens, top_k); for padding, that of expert 0."""
    return values.gather(-1, choices.clamp(min=0).long())


def one_hot(experts: Tensor, num_experts: int) -> Tensor:
    """Add a last dimension of `num_experts`: 1 at the expert and 0 elsewhere, all 0 for no expert."""
    return (experts.unsqueeze(-1) == torch.arange(num_experts, device=experts.device)).int()
