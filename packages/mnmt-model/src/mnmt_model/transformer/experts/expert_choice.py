"""Experts that choose their tokens, in an encoder (Zhou et al. 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from mnmt_model.transformer.experts.gate import Gate
from mnmt_model.transformer.experts.operators import extension
from mnmt_model.transformer.experts.routes import TokenRoutes
from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.modules import table_rows

if TYPE_CHECKING:
    from mnmt_model.transformer.experts.operators import Routing

SLOWEST_RATE = 0.01
"""Share of a step in the running means: they are over about the last hundred steps."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ChosenTokens:
    """The tokens of each expert: those of the first, then those of the second, and so on."""

    tokens: Tensor
    """`(n,)` int64, where each chosen token is among all tokens; one that several experts choose is there as
    often."""
    experts: Tensor
    """`(n,)` int32, the expert that chose it."""
    weights: Tensor
    """`(n,)` float32, its gate."""
    ends: Tensor
    """`(num_experts,)` int32, the row after the last of each expert."""

    def dispatch(self, x: Tensor) -> Tensor:
        """Return the rows `(n, d_model)` of the chosen tokens of `x (num_tokens, d_model)`."""
        return table_rows(x, self.tokens)

    def combine(self, outputs: Tensor, num_tokens: int) -> Tensor:
        """Return each token's sum of its experts' `outputs (n, d_model)` by weight, `(num_tokens, d_model)`.

        It adds in float32, one row after the other, so that the sum is the same each time: on a GPU
        `index_add` would not be, but `index_put` sorts its rows.
        """
        weighted = outputs.float() * self.weights[:, None]
        zeros = weighted.new_zeros(num_tokens, outputs.size(1))
        if outputs.is_cuda:
            return zeros.index_put((self.tokens,), weighted, accumulate=True).to(outputs.dtype)
        return zeros.index_add(0, self.tokens, weighted).to(outputs.dtype)

    def routing_of_rows(self) -> Routing:
        """Return the routing of the rows, each of which goes to its expert, with the weight 1."""
        experts, ones = self.experts[None, :, None], torch.ones_like(self.weights)[None, :, None]
        return self._routing(experts, ones, gate_means=ones[:0], log_sums=ones[:0])

    def routing(self, logits: Tensor, gates: Tensor) -> Routing:
        """Return the routing of all tokens: to expert e, or to none, at [..., e].

        Args:
            logits: `(num_tokens, num_experts)`.
            gates: `(num_tokens, num_experts)`, their softmax.
        """
        experts = torch.full_like(gates, -1, dtype=torch.int32)
        experts[self.tokens, self.experts] = self.experts
        weights = gates.where(experts >= 0, 0.0)
        log_sums = logits.logsumexp(dim=-1)
        return self._routing(
            experts[None], weights[None], gate_means=gates.mean(dim=0)[None], log_sums=log_sums[None]
        )

    def _routing(self, experts: Tensor, weights: Tensor, *, gate_means: Tensor, log_sums: Tensor) -> Routing:
        load = self.ends.diff(prepend=self.ends.new_zeros(1))
        routing: Routing = extension().Routing(
            experts=experts,
            slots=experts,  # Any number but -1 says that an expert takes the token.
            weights=weights,
            gate_means=gate_means,
            log_sums=log_sums,
            load=load[None, :, None],
            real_tokens=load.new_full((1,), experts.size(1)),
            capacity=None,
        )
        return routing


def best_tokens(gates: Tensor, capacity: int) -> ChosenTokens:
    """Let each expert choose the tokens with the best gates, all if there are no more than it has slots.

    Of equal gates, the earlier token comes first.

    Args:
        gates: `(num_tokens, num_experts)`.
        capacity: Slots of an expert.
    """
    by_expert = gates.T
    order = by_expert.detach().sort(dim=1, descending=True, stable=True).indices[:, :capacity]
    numbers = torch.arange(len(order), dtype=torch.int32, device=gates.device)
    return ChosenTokens(
        tokens=order.flatten(),
        experts=numbers[:, None].expand_as(order).flatten(),
        weights=by_expert.gather(1, order).flatten(),
        ends=order.size(1) * (numbers + 1),
    )


def tokens_above(gates: Tensor, thresholds: Tensor) -> ChosenTokens:
    """Let each expert choose all tokens whose gate is at least its threshold.

    Args:
        gates: `(num_tokens, num_experts)`.
        thresholds: `(num_experts,)`.
    """
    passed = (gates >= thresholds).T
    experts, tokens = passed.nonzero(as_tuple=True)
    ends = passed.sum(dim=1).cumsum(0).int()
    return ChosenTokens(tokens=tokens, experts=experts.int(), weights=gates[tokens, experts], ends=ends)


class ExpertChoiceGate(Gate):
    """G(x) = softmax(W x), by which experts choose tokens.

    In training each expert takes the tokens with the best gates, as many as it has slots, so that all are
    used alike and none drops what it wants. Which tokens those are depends on all tokens of the group. In
    evaluation it takes each token whose gate is at least its threshold: the running mean of the least gate
    that it took in training. So a sentence's tokens are routed the same whatever stands beside it.

    Args:
        config: Widths, number of experts and their slots.
    """

    thresholds: Tensor
    """`(num_experts,)` float32; at first 0, so that experts take all tokens."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.register_buffer("thresholds", torch.zeros(config.num_experts))

    def forward(self, x: Tensor, routes: TokenRoutes | None = None) -> ChosenTokens:
        """Return the chosen tokens, of those with the states `x (num_tokens, d_model)`.

        Args:
            x: The states.
            routes: Describes the tokens, in training or where choices are counted; takes down who chose them.
        """
        logits = self.logits(x)
        gates, capacity = logits.softmax(dim=-1), self.capacity(len(x))
        choice = tokens_above(gates, self.thresholds) if capacity is None else best_tokens(gates, capacity)
        if routes is not None:
            least = choice.weights.detach()[choice.ends - 1] if self.training else None
            routes.record(self.number, choice.routing(logits, gates), least_gates=least)
        return choice

    def follow(self, least: Tensor, *, step: int) -> None:
        """Move the thresholds to the least gates `(num_experts,)` that were taken in training step `step`.

        t ← t + max(1 / step, 0.01) (least - t): at first the mean of all steps, from 1.
        """
        self.thresholds.lerp_(least, max(1 / step, SLOWEST_RATE))
