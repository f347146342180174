"""The gate of a mixture of experts, with which tokens choose experts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the customary name

from mnmt_model.transformer.experts.operators import extension, operators
from mnmt_model.transformer.experts.routes import TokenRoutes
from mnmt_model.transformer.model_config import ModelConfig

if TYPE_CHECKING:
    from mnmt_model.transformer.experts.operators import Layout, Routing


class Gate(nn.Module):
    """G(x) = softmax(W x) in float32, with which each token chooses its experts.

    Lepikhin et al. 2021 (GShard), algorithm 1, for any number of choices. In training an expert has a limited
    number of slots, and the second of two choices may be random; in evaluation each token has its best
    experts. Experts are ranked by W x + b, with a bias b that is updated from loads, not by gradients (Wang
    et al. 2024); weights depend only on W x.

    Args:
        config: Widths, number of experts, their slots, and how tokens choose them.
    """

    balance_bias: Tensor
    """`(num_experts,)` float32; 0 unless training has a `balance_bias_rate`."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.weight = nn.Parameter(torch.empty(config.num_experts, config.d_model))
        self.number = 0
        """The index of the gate's mixture among all mixtures of the model."""
        self.register_buffer("balance_bias", torch.zeros(config.num_experts))

    def logits(self, x: Tensor) -> Tensor:
        """Return `(num_tokens, num_experts)` of the states `x (num_tokens, d_model)`."""
        return F.linear(x.float(), self.weight.float())

    def capacity(self, num_tokens: int) -> int | None:
        """Return the slots of each expert in a group of a pass of tokens; None without a limit."""
        factor = self.config.capacity_factor if self.training else self.config.eval_capacity_factor
        return self.config.expert_capacity(num_tokens, factor) if factor else None

    def balance(self, load: Tensor, *, rate: float) -> None:
        """Move the bias by `rate` towards equal loads: up for experts below the mean, down for those above.

        b_e ← b_e + rate · sign(mean load - load_e) (Wang et al. 2024, algorithm 1).

        Args:
            load: `(num_experts,)` choices of each expert in a batch, including dropped ones.
            rate: The step.
        """
        self.balance_bias.add_(torch.sign(load.mean() - load), alpha=rate)

    def forward(
        self, x: Tensor, routes: TokenRoutes | None = None, *, rows: int | None = None
    ) -> tuple[Routing, Layout]:
        """Return the routing of states in groups, and their layout in the experts' buffers.

        Choices, weights and rows are `(1, num_tokens, experts_per_token)`, whatever the groups.

        Args:
            x: `(num_tokens, d_model)` states.
            routes: The tokens, in training or for counting choices; records the routing.
            rows: Rows of each expert for a group, the same number of groups in all processes; by default an
                expert has as many rows as tokens.
        """
        most = x.size(0) if rows is None or routes is None else routes.most_tokens
        num_groups = self.config.num_groups(most)
        logits = self._grouped(self.logits(x), num_groups)
        padding = ~self._grouped(x.new_ones(x.size(0), dtype=torch.bool), num_groups)
        routing, layout = operators(x.device.type).route(
            logits,
            padding,
            layout="ragged" if rows is None else "capacity",
            bin_size=rows,
            top_k=self.config.experts_per_token,
            capacity=self.capacity(x.size(0)),
            bias=self.balance_bias.float(),
            threshold=self.config.second_expert_threshold,
            renormalise=self.config.renormalise,
            **(self._policy(padding, routes) if self.training and routes is not None else {}),
        )
        routing, layout = _ungrouped(routing, layout, num_tokens=x.size(0))
        if routes is not None:
            routes.record(self.number, routing)
        return routing, layout

    def _grouped(self, values: Tensor, num_groups: int) -> Tensor:
        """Return `(num_groups, group size, …)` of values `(num_tokens, …)`; several are filled up with 0."""
        size = self.config.group_size if num_groups > 1 else values.size(0)
        if missing := num_groups * size - values.size(0):
            values = torch.cat([values, values.new_zeros(missing, *values.shape[1:])])
        return torch.unflatten(values, 0, (num_groups, size))

    def _policy(self, padding: Tensor, routes: TokenRoutes) -> dict[str, Any]:
        """Return the options for the random or uniform choice of experts in training."""
        seed_and_step, top_k = routes.context.seed_and_step, self.config.experts_per_token
        if routes.context.uniform:
            # Over all groups, or each would begin with the same experts.
            choices = extension().uniform_choices(
                padding.view(1, -1), self.config.num_experts, seed_and_step[1], top_k=top_k
            )
            return {"choices": choices.view(*padding.shape, top_k)}
        if self.config.second_expert == "always" or top_k != 2:
            return {}
        return {
            "second_expert_policy": self.config.second_expert,
            "random_key": extension().RandomKey(seed_and_step=seed_and_step, layer=self.number),
            "token_ids": self._grouped(routes.ids, padding.size(0)),
        }


def _ungrouped(routing: Routing, layout: Layout, *, num_tokens: int) -> tuple[Routing, Layout]:
    """Return both with the tokens of all groups in one row, without those that filled the last group."""
    experts, slots, weights, log_sums, rows = (
        values.flatten(0, 1)[None, :num_tokens]
        for values in (routing.experts, routing.slots, routing.weights, routing.log_sums, layout.rows)
    )
    one_row = replace(routing, experts=experts, slots=slots, weights=weights, log_sums=log_sums)
    return one_row, replace(layout, rows=rows)
