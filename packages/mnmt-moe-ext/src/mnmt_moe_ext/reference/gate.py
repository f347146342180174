"""The top-2 gate in plain torch, step by step."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from mnmt_moe_ext.counter_rng import RandomKey, uniform
from mnmt_moe_ext.gate import Renormalise, SecondExpertPolicy, check_gate_arguments, number_tokens
from mnmt_moe_ext.routing import Routing

NONE = -1
EPSILON = 1e-9


def top2_gate(
    logits: Tensor,
    padding_mask: Tensor | None = None,
    *,
    capacity: int | None,
    choices: Tensor | None = None,
    second_expert_policy: SecondExpertPolicy = "always",
    random_key: RandomKey | None = None,
    token_ids: Tensor | None = None,
    threshold: float = 0.5,
    renormalise: Renormalise = "before",
) -> Routing:
    """Compute `mnmt_moe_ext.top2_gate` in plain torch; it can be differentiated any number of times."""
    if padding_mask is None:
        padding_mask = torch.zeros(logits.shape[:2], dtype=torch.bool, device=logits.device)
    check_gate_arguments(
        logits,
        padding_mask,
        capacity=capacity,
        choices=choices,
        second_expert_policy=second_expert_policy,
        random_key=random_key,
        token_ids=token_ids,
        threshold=threshold,
        renormalise=renormalise,
    )
    num_experts = logits.shape[-1]
    if choices is None:
        choices = two_largest(logits, padding_mask)
    experts = choices
    if second_expert_policy != "always" and random_key is not None:
        draws = uniform(random_key, number_tokens(token_ids, padding_mask))
        if second_expert_policy == "sampled":
            choices = experts = sample_second(logits, choices, draws)
        else:
            keep = keep_second(logits, choices, draws * threshold, renormalise)
            experts = torch.stack([choices[..., 0], choices[..., 1].where(keep, NONE)], dim=-1)
    gates = softmax(logits, padding_mask)
    slots = assign_slots(experts, num_experts=num_experts, capacity=capacity)
    return Routing(
        experts=experts,
        slots=slots,
        weights=weigh(gates, choices, slots, renormalise),
        auxiliary_loss=auxiliary_loss(gates, choices),
        load=one_hot(experts, num_experts).sum(dim=1).transpose(1, 2).int(),
        capacity=capacity,
    )


def softmax(logits: Tensor, padding_mask: Tensor) -> Tensor:
    """Return the gates (groups, tokens, experts), 0 for padding."""
    logits = logits if logits.dtype == torch.float64 else logits.float()
    return logits.softmax(dim=-1).masked_fill(padding_mask.unsqueeze(-1), 0)


def two_largest(logits: Tensor, padding_mask: Tensor) -> Tensor:
    """Return the choices (groups, tokens, 2) int32, best first; -1 for padding. NaN counts as -infinity."""
    comparable = logits.where(~logits.isnan(), -math.inf)
    order = comparable.sort(dim=-1, descending=True, stable=True).indices
    return order[..., :2].int().masked_fill(padding_mask.unsqueeze(-1), NONE)


def keep_second(logits: Tensor, choices: Tensor, bounds: Tensor, renormalise: Renormalise) -> Tensor:
    """Return whether bound < g_2 / (g_1 + g_2), or bound < g_2: (groups, tokens) bool.

    It is decided in float64 and without a division, so that rounding does not matter.
    """
    logits = logits.detach().double()
    first, second = gather_choices(logits, choices).unbind(dim=-1)
    competing = logits if renormalise == "after" else torch.stack([first, second], dim=-1)
    largest = competing.amax(dim=-1)
    total = (competing - largest.unsqueeze(-1)).exp().sum(dim=-1)
    return bounds * total < (second - largest).exp()


def sample_second(logits: Tensor, choices: Tensor, draws: Tensor) -> Tensor:
    """Draw another second choice from the gates of all experts but the first choice.

    It is the first expert up to which these gates sum to more than draw times their total.
    """
    logits = logits.detach().double()
    second_largest = gather_choices(logits, choices)[..., 1:]
    is_first = one_hot(choices[..., 0], logits.shape[-1]).bool()
    odds = (logits - second_largest).exp().masked_fill(is_first, 0)
    running = odds.cumsum(dim=-1)
    passed = running > draws.unsqueeze(-1) * running[..., -1:]
    possible = torch.where(passed.any(dim=-1, keepdim=True), passed, keep_last(odds > 0))
    sampled = possible.int().argmax(dim=-1).int().where(possible.any(dim=-1), choices[..., 1])
    return torch.stack([choices[..., 0], sampled.where(choices[..., 0] != NONE, NONE)], dim=-1)


def keep_last(mask: Tensor) -> Tensor:
    """Return the mask with only the last True of each row."""
    after = mask.flip(-1).cumsum(dim=-1).flip(-1)
    return mask & (after == 1)


def assign_slots(experts: Tensor, *, num_experts: int, capacity: int | None) -> Tensor:
    """Assign slots (groups, tokens, 2) int32 in token order, every first choice before any second choice.

    The position of a second choice is the number of second choices before it, including dropped ones, plus
    the number of first choices with a slot.
    """
    limit = 2 * experts.shape[1] + 1 if capacity is None else capacity
    first, second = one_hot(experts, num_experts).unbind(dim=2)
    first_slots = first.sum(dim=1, keepdim=True).clamp(max=limit)
    first_position = ((first.cumsum(dim=1) - first) * first).sum(dim=-1)
    second_position = ((second.cumsum(dim=1) - second + first_slots) * second).sum(dim=-1)
    positions = torch.stack([first_position, second_position], dim=-1).int()
    return positions.masked_fill((experts == NONE) | (positions >= limit), NONE)


def weigh(gates: Tensor, choices: Tensor, slots: Tensor, renormalise: Renormalise) -> Tensor:
    """Return the weights (groups, tokens, 2): the choices' gates over their sum, 0 without a slot."""
    values = gather_choices(gates, choices)
    with_slot = torch.where(slots != NONE, values, 0)
    summands = with_slot if renormalise == "after" else values
    return with_slot / (summands.sum(dim=-1, keepdim=True) + EPSILON)


def auxiliary_loss(gates: Tensor, choices: Tensor) -> Tensor:
    """Return E² · mean(f_e · m_e) over experts and over the groups that hold a real token; 0 if none does.

    f_e is the share of the group's real tokens whose first choice is e (before drops), m_e their mean gate.
    """
    num_experts = gates.shape[-1]
    real = (choices[..., 0] != NONE).sum(dim=1, keepdim=True)
    f = one_hot(choices[..., 0], num_experts).sum(dim=1).to(gates.dtype) / real.clamp(min=1)
    m = gates.sum(dim=1) / real.clamp(min=1)
    occupied_groups = (real > 0).sum().clamp(min=1)
    return num_experts * (f * m).sum() / occupied_groups


def gather_choices(values: Tensor, choices: Tensor) -> Tensor:
    """Return each choice's value, (groups, tokens, 2); for padding, that of expert 0."""
    return values.gather(-1, choices.clamp(min=0).long())


def one_hot(experts: Tensor, num_experts: int) -> Tensor:
    """Add a last dimension of `num_experts`: 1 at the expert and 0 elsewhere, all 0 for no expert."""
    return (experts.unsqueeze(-1) == torch.arange(num_experts, device=experts.device)).int()
