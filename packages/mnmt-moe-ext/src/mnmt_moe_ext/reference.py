"""The top-2 gate in plain torch: the definition that the C++ and CUDA operators are tested against."""

from __future__ import annotations

import torch
from torch import Tensor

from mnmt_moe_ext.arguments import Renormalise, SecondExpertPolicy, check_gate_arguments
from mnmt_moe_ext.routing import Routing

NONE = -1
EPSILON = 1e-9


def reference_top2_gate(
    logits: Tensor,
    padding_mask: Tensor | None = None,
    *,
    capacity: int,
    second_expert_policy: SecondExpertPolicy = "always",
    draws: Tensor | None = None,
    threshold: float = 0.5,
    renormalise: Renormalise = "before",
) -> Routing:
    """The same as `top2_gate`, step by step and differentiated by autograd; slow."""
    if padding_mask is None:
        padding_mask = torch.zeros(logits.shape[:2], dtype=torch.bool, device=logits.device)
    check_gate_arguments(
        logits,
        padding_mask,
        draws,
        capacity=capacity,
        second_expert_policy=second_expert_policy,
        threshold=threshold,
        renormalise=renormalise,
    )
    gates, choices = select_top2(logits, padding_mask)
    return route(gates, choices, draws, capacity=capacity, threshold=threshold, renormalise=renormalise)


def select_top2(logits: Tensor, padding_mask: Tensor) -> tuple[Tensor, Tensor]:
    """Gates (groups, tokens, experts) = softmax(logits), and choices (groups, tokens, 2) int32, best first.

    Among equal logits the lower index comes first. Padding has gates 0 and choices -1.
    """
    logits = logits if logits.dtype == torch.float64 else logits.float()
    gates = logits.softmax(dim=-1).masked_fill(padding_mask.unsqueeze(-1), 0)
    choices = logits.sort(dim=-1, descending=True, stable=True).indices[..., :2].int()
    return gates, choices.masked_fill(padding_mask.unsqueeze(-1), NONE)


def route(
    gates: Tensor,
    choices: Tensor,
    draws: Tensor | None,
    *,
    capacity: int,
    threshold: float,
    renormalise: Renormalise,
) -> Routing:
    """Slots, weights and auxiliary loss of chosen experts; `draws` None keeps every second choice."""
    chosen = gates.gather(-1, choices.clamp(min=0).long()) * (choices != NONE)
    if renormalise == "before":
        chosen = chosen / (chosen.sum(dim=-1, keepdim=True) + EPSILON)
    experts = choices
    if draws is not None:
        kept = torch.stack(
            [torch.ones_like(draws, dtype=torch.bool), draws < chosen[..., 1] / threshold], dim=-1
        )
        experts = choices.masked_fill(~kept, NONE)
    slots = assign_slots(experts, num_experts=gates.shape[-1], capacity=capacity)
    weights = chosen * (slots != NONE)
    if renormalise == "after":
        weights = weights / (weights.sum(dim=-1, keepdim=True) + EPSILON)
    loss = auxiliary_loss(gates, choices)
    return Routing(experts=experts, slots=slots, weights=weights, auxiliary_loss=loss)


def assign_slots(experts: Tensor, *, num_experts: int, capacity: int) -> Tensor:
    """Slots (groups, tokens, 2) int32 in token order, every first choice before any second choice.

    A second choice counts the second choices before it, dropped ones too, and the kept first choices.
    """
    indices = torch.arange(num_experts, device=experts.device)
    first, second = ((experts[..., rank].unsqueeze(-1) == indices).int() for rank in (0, 1))
    kept_first = first.sum(dim=1, keepdim=True).clamp(max=capacity)
    first_position = ((first.cumsum(dim=1) - first) * first).sum(dim=-1)
    second_position = ((second.cumsum(dim=1) - second + kept_first) * second).sum(dim=-1)
    positions = torch.stack([first_position, second_position], dim=-1).int()
    return positions.masked_fill((experts == NONE) | (positions >= capacity), NONE)


def auxiliary_loss(gates: Tensor, choices: Tensor) -> Tensor:
    """E² · mean(f_e · m_e) over experts and over the groups that hold a real token; 0 if none does.

    f_e is the share of the group's real tokens whose first choice is e (before drops), m_e their mean gate.
    """
    num_experts = gates.shape[-1]
    real = (choices[..., 0] != NONE).sum(dim=1, keepdim=True)
    first = (choices[..., :1] == torch.arange(num_experts, device=choices.device)).to(gates.dtype)
    f = first.sum(dim=1) / real.clamp(min=1)
    m = gates.sum(dim=1) / real.clamp(min=1)
    occupied_groups = (real > 0).sum().clamp(min=1)
    return num_experts * (f * m).sum() / occupied_groups
