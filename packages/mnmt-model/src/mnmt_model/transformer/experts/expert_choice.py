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
"""Smallest weight of a step in the running means, which thus cover about a hundred steps."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ChosenTokens:
    """The chosen tokens, ordered by expert."""

    tokens: Tensor
    """`(n,)` int64, the index of each chosen token, once for every expert that chose it."""
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
        """Return the weighted sum of experts' `outputs (n, d_model)` for each token, `(num_tokens, d_model)`.

        Sums are in float32 and deterministic: on a GPU `index_add` is not, but `index_put` sorts its rows.
        """
        weighted = outputs.float() * self.weights[:, None]
        zeros = weighted.new_zeros(num_tokens, outputs.size(1))
        if outputs.is_cuda:
            return zeros.index_put((self.tokens,), weighted, accumulate=True).to(outputs.dtype)
        return zeros.index_add(0, self.tokens, weighted).to(outputs.dtype)

    def routing_of_rows(self) -> Routing:
        """Return the routing of the rows, each to its expert with weight 1."""
        experts, ones = self.experts[None, :, None], torch.ones_like(self.weights)[None, :, None]
        return self._routing(experts, ones, gate_means=ones[:0], log_sums=ones[:0])

    def routing(self, logits: Tensor, gates: Tensor) -> Routing:
        """Return the routing of all tokens; [..., e] is e if expert e chose the token, else -1.

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
            slots=experts,  # any number except -1 means that an expert takes the token
            weights=weights,
            gate_means=gate_means,
            log_sums=log_sums,
            load=load[None, :, None],
            real_tokens=load.new_full((1,), experts.size(1)),
            capacity=None,
        )
        return routing


def best_tokens(gates: Tensor, capacity: int) -> ChosenTokens:
    """Let each expert choose the `capacity` tokens with the largest gates; ties go to the earlier token.

    Args:
        gates: `(num_tokens, num_experts)`.
        capacity: Slots of an expert; it takes all tokens if they are fewer.
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

    In training each expert fills its slots with the tokens of the largest gates, so that all experts have
    equal loads without drops. This choice depends on all tokens of the group. In evaluation an expert takes
    all tokens with a gate of at least its threshold, the running mean of its smallest chosen gate in
    training. So the routing of a sentence does not depend on the batch.

    Args:
        config: Widths, number of experts and their slots.
    """

    thresholds: Tensor
    """`(num_experts,)` float32; initially 0, so that experts take all tokens."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.register_buffer("thresholds", torch.zeros(config.num_experts))

    def forward(self, x: Tensor, routes: TokenRoutes | None = None) -> ChosenTokens:
        """Return the chosen tokens for states `x (num_tokens, d_model)`.

        Args:
            x: The states.
            routes: The tokens, in training or for counting choices; records the routing.
        """
        logits = self.logits(x)
        gates, capacity = logits.softmax(dim=-1), self.capacity(len(x))
        choice = tokens_above(gates, self.thresholds) if capacity is None else best_tokens(gates, capacity)
        if routes is not None:
            least = choice.weights.detach()[choice.ends - 1] if self.training else None
            routes.record(self.number, choice.routing(logits, gates), least_gates=least)
        return choice

    def follow(self, least: Tensor, *, step: int) -> None:
        """Move the thresholds towards the smallest chosen gates `(num_experts,)` of training step `step`.

        t ← t + max(1 / step, 0.01) (least - t): at first the mean of all steps, from 1.
        """
        self.thresholds.lerp_(least, max(1 / step, SLOWEST_RATE))
