"""The routing of tokens to experts, and the capacity of an expert."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

CAPACITY_MULTIPLE = 4
ROUNDING = 1e-12
"""A share counts as a multiple if it exceeds it by no more than this fraction, which is rounding."""


@dataclass(frozen=True, kw_only=True)
class Routing:
    """Where each token of (groups, tokens) goes: its first choice at [..., 0], its second at [..., 1]."""

    experts: Tensor
    """(groups, tokens, 2) int32: the expert; -1 for padding and for a second choice that the policy drops."""
    slots: Tensor
    """(groups, tokens, 2) int32: the token's place at that expert, in [0, capacity); -1 if it has none."""
    weights: Tensor
    """(groups, tokens, 2) float32 (float64 for float64 logits): the expert's weight in the token's output; 0
    without a slot."""
    auxiliary_loss: Tensor
    """Scalar: E² · mean over groups and experts of f_e · m_e; 1 if the experts are in perfect balance."""
    load: Tensor
    """(groups, experts, 2) int32: the number of tokens that claim each expert as their first and as their
    second choice, including dropped ones."""
    capacity: int | None
    """Slots of each expert in each group; None if every claim has a slot."""


def expert_capacity(*, num_tokens: int, num_experts: int, capacity_factor: float = 2.0) -> int:
    """Return the slots C of each expert in a group of S tokens (Lepikhin et al. 2021, GShard).

    C = 4 · ceil(S · capacity_factor / (4 E)): the expert's fair share of the group's tokens, times the
    factor, rounded up to a multiple of four. GShard's factor is 2, one for each choice.

    Args:
        num_tokens: S, the tokens of a group, padding included.
        num_experts: E, the number of experts.
        capacity_factor: Slots as a multiple of the fair share. At 2 no choice is dropped if all experts are
            chosen equally often.

    Returns:
        C, a multiple of four.

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
    return math.ceil(share / CAPACITY_MULTIPLE * (1 - ROUNDING)) * CAPACITY_MULTIPLE
