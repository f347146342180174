"""What a gate decides: which tokens go where, and with which weight."""

from __future__ import annotations

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
