"""The top-2 gate of a mixture-of-experts layer."""

from __future__ import annotations

import torch
from torch import Tensor

from mnmt_moe_ext import cuda, operators, reference
from mnmt_moe_ext.arguments import Renormalise, SecondExpertPolicy, check_gate_arguments
from mnmt_moe_ext.routing import Routing


def top2_gate(
    logits: Tensor,
    padding_mask: Tensor | None = None,
    *,
    capacity: int,
    second_expert_policy: SecondExpertPolicy = "always",
    draws: Tensor | None = None,
    threshold: float = 0.5,
    renormalise: Renormalise = "before",
) -> Routing:
    """Routes each token to its two best experts (Lepikhin et al. 2021, GShard, algorithm 1).

    The gates are g = softmax(logits) over the experts, in float32; the choices are the two largest logits,
    the lower index first among equals. In each group every first choice gets its slot before any second
    choice, both in token order; a choice that finds its expert's slots taken is dropped. A token's two
    weights are g_1 and g_2 over g_1 + g_2 + 1e-9, and the weight of a dropped choice is 0. Padding is routed
    nowhere.

    On the CPU it is one compiled operator, forward and backward. On a GPU the softmax and the selection are
    compiled and the rest are torch operators. It can be differentiated once, through `weights` and
    `auxiliary_loss`, with respect to `logits`.

    Args:
        logits: (groups, tokens, experts), float32, bfloat16 or float64; float64 is computed in float64.
        padding_mask: (groups, tokens) bool, True for padding; None for no padding.
        capacity: Slots of each expert in each group, as `expert_capacity` gives it.
        second_expert_policy: "always" keeps every second choice; "random" keeps it with probability
            min(1, weight of the second choice / threshold). A choice not kept takes no slot.
        draws: (groups, tokens) float32, uniform in [0, 1), for "random": kept where
            draw < weight / threshold.
        threshold: For "random". The default of 0.5 keeps the second choice if 2 g_2 exceeds the draw.
        renormalise: "before" divides by the sum of both gates; "after" by the sum over the choices that got a
            slot, and then the policy sees the plain gate.

    Returns:
        The routing; its `auxiliary_loss` is E² · mean(f_e · m_e) over experts and over the groups that hold a
        real token. f_e is the share of the group's real tokens whose first choice is e, before drops, and
        m_e their mean gate.

    Raises:
        TypeError: An argument has the wrong dtype.
        ValueError: An argument has the wrong shape, device or value.
        RuntimeError: `logits` is on a GPU and the CUDA kernels were not built.
    """
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
    if logits.is_cuda:
        cuda.require_kernels()
        gates, choices = operators.top2_select(logits, padding_mask)
        return reference.route(
            gates, choices, draws, capacity=capacity, threshold=threshold, renormalise=renormalise
        )
    weights, auxiliary_loss, experts, slots, _, _ = torch.ops.mnmt_moe_ext.top2_gate(
        logits, padding_mask, draws, capacity, threshold, renormalise == "after"
    )
    return Routing(experts=experts, slots=slots, weights=weights, auxiliary_loss=auxiliary_loss)
