"""What a gate decides: which tokens go where, and with which weight."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Routing:
    """The routing of (groups, tokens) to experts, the first choice at [..., 0] and the second at [..., 1]."""

    experts: Tensor
    """(groups, tokens, 2) int32: the chosen expert; -1 for padding and for a second choice not kept."""

    slots: Tensor
    """(groups, tokens, 2) int32: the token's place at that expert, in [0, capacity); -1 if it got none."""

    weights: Tensor
    """(groups, tokens, 2) float32 (float64 for float64 logits): the expert's weight in the token's output; 0
    where there is no slot."""

    auxiliary_loss: Tensor
    """Scalar: E² · mean over groups and experts of f_e · m_e; 1 if the experts are in perfect balance."""

    load: Tensor
    """(groups, experts, 2) int32: tokens that claim each expert as their first and second choice, those that
    are dropped included."""

    capacity: int | None
    """Slots of each expert in each group; None where there is one for every claim."""


MULTIPLE = 4
ROUNDING = 1e-12
"""A share that rounding has pushed so little above a multiple counts as that multiple."""


def expert_capacity(*, num_tokens: int, num_experts: int, capacity_factor: float = 2.0) -> int:
    """Slots C of each expert in a group of S tokens.

    C = 4 · ceil(S · capacity_factor / (4 E)): the expert's fair share of the group's tokens, times the
    factor, rounded up to a multiple of four. GShard's factor is 2, one for each choice.

    Args:
        num_tokens: S, tokens in a group, padding included.
        num_experts: E.
        capacity_factor: Slots in fair shares of the group's tokens; at 2 there is one for each choice, if all
            experts are chosen equally often.

    Returns:
        C in tokens, a multiple of four.

    Raises:
        ValueError: A number is out of range.
    """
    if num_tokens < 1:
        raise ValueError(f"`num_tokens` must be at least 1, but is {num_tokens}.")
    if num_experts < 2:
        raise ValueError(f"`num_experts` must be at least 2, but is {num_experts}.")
    if not 0 < capacity_factor < math.inf:
        raise ValueError(f"`capacity_factor` must be positive and finite, but is {capacity_factor}.")
    share = num_tokens * capacity_factor / num_experts
    return math.ceil(share / MULTIPLE * (1 - ROUNDING)) * MULTIPLE
