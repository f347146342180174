"""The routing of tokens to experts with its losses, and the capacity of an expert."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

CAPACITY_MULTIPLE = 4
ROUNDING = 1e-12
"""A share counts as a multiple if it exceeds it by no more than this fraction, which is rounding."""


@dataclass(frozen=True, kw_only=True)
class Routing:
    """The experts of each token of (groups, tokens): the best choice at [..., 0], the next at [..., 1], …."""

    experts: Tensor
    """(groups, tokens, top_k) int32: the expert; -1 for padding, and for a second choice that is not
    kept."""
    slots: Tensor
    """(groups, tokens, top_k) int32: the token's slot at that expert, in [0, capacity); -1 without a slot."""
    weights: Tensor
    """(groups, tokens, top_k) float32 (float64 for float64 logits): the expert's weight in the token's
    output; 0 without a slot."""
    gate_means: Tensor
    """(groups, experts), in the dtype of the weights: the mean gate of the group's real tokens; 0 without
    real tokens."""
    log_sums: Tensor
    """(groups, tokens), in the dtype of the weights: the logarithm of Σ exp(logits); 0 for padding."""
    load: Tensor
    """(groups, experts, top_k) int32: the number of tokens that claim each expert as their choice of each
    rank, including dropped ones."""
    real_tokens: Tensor
    """(groups,) int32: the number of tokens that are not padding."""
    capacity: int | None
    """Slots of each expert in each group; None if every claim has a slot."""

    @property
    def balance_counts(self) -> Tensor:
        """The claims that the auxiliary loss counts, (groups, experts) int.

        They are the first choices where tokens have one or two, as in Switch (Fedus et al. 2022) and GShard
        (Lepikhin et al. 2021), and all choices where they have more, as in Mixtral (Jiang et al. 2024) and
        DeepSeekMoE (Dai et al. 2024).
        """
        return self.load[..., 0] if self.load.shape[2] <= 2 else self.load.sum(dim=2)

    @property
    def auxiliary_loss(self) -> Tensor:
        """The auxiliary loss with each group's own counts, a scalar: `balance_loss(self)`."""
        return balance_loss(self)

    @property
    def z_loss(self) -> Tensor:
        """Mean of log_sums² over the real tokens, a scalar (Zoph et al. 2022, ST-MoE, eq. 5)."""
        return self.log_sums.square().sum() / self.real_tokens.sum().clamp(min=1)


def balance_loss(routing: Routing, *, counts: Tensor | None = None) -> Tensor:
    """Return E² · mean(f_e · m_e) over experts and groups with a real token; 0 without such a group.

    f_e is the expert's share of the claims that are counted, before drops, and m_e the mean gate of the
    group's real tokens, by which gradients reach the logits. It is 1 in perfect balance, and E at worst.

    Args:
        routing: The routing that `route` returns.
        counts: (experts,) claims in a larger batch that should be balanced as a whole (Qiu et al. 2025,
            "Demons in the detail"): the sum of `routing.balance_counts` over its groups, parts and processes.
            By default each group's own claims (Lepikhin et al. 2021, GShard, algorithm 1).

    Raises:
        ValueError: `counts` are not those of the routing's experts.
    """
    num_experts = routing.gate_means.shape[1]
    if counts is not None and tuple(counts.shape) != (num_experts,):
        raise ValueError(f"`counts` must be (experts,) = ({num_experts},), but is {tuple(counts.shape)}.")
    counts = (routing.balance_counts if counts is None else counts).to(routing.gate_means.dtype)
    shares = counts / counts.sum(dim=-1, keepdim=True).clamp(min=1)
    scale = counts.shape[-1] / (routing.real_tokens > 0).sum().clamp(min=1)
    return (scale * shares * routing.gate_means).sum()


def expert_capacity(*, num_tokens: int, num_experts: int, capacity_factor: float = 2.0) -> int:
    """Return the slots C of each expert in a group of S tokens (Lepikhin et al. 2021, GShard).

    C = 4 · ceil(S · capacity_factor / (4 E)): the expert's fair share of the group's tokens, times the
    factor, rounded up to a multiple of four. GShard's factor is 2, one for each choice.

    Args:
        num_tokens: S, the tokens of a group, padding included.
        num_experts: E, the number of experts.
        capacity_factor: Slots as a multiple of the fair share. A factor equal to the choices of a token
            drops nothing if all experts are chosen equally often.

    Returns:
        C, a multiple of four.

    Raises:
        ValueError: A number is out of range.
    """
    if num_tokens < 1:
        raise ValueError(f"`num_tokens` must be at least 1, but is {num_tokens}.")
    if num_experts < 1:
        raise ValueError(f"`num_experts` must be at least 1, but is {num_experts}.")
    if not 0 < capacity_factor < math.inf:
        raise ValueError(f"`capacity_factor` must be positive and finite, but is {capacity_factor}.")
    share = num_tokens * capacity_factor / num_experts
    return math.ceil(share / CAPACITY_MULTIPLE * (1 - ROUNDING)) * CAPACITY_MULTIPLE
