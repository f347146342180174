"""The mixture-of-experts feed-forward: a gate and its experts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_model.transformer.experts.operators import extension, operators
from mnmt_model.transformer.experts.ranks import ExpertRanks
from mnmt_model.transformer.experts.routes import TokenRoutes
from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.modules import Dropout
from mnmt_model.transformer.products import TORCH, round_rows

if TYPE_CHECKING:
    from mnmt_model.transformer.experts.operators import Routing


class MixtureOfExperts(nn.Module):
    """y = Σ_e G_e wo_e ReLU(wi_e x), over the two experts e that the gate G chooses for a token.

    Lepikhin et al. 2021 (GShard), eqs. 1-3 and algorithm 1. In training an expert has a limited number of
    slots. A token whose two choices are both dropped gets 0, so that only the residual carries it.

    Args:
        config: The model's config.
        dropout: Rate of the hidden states.
        ranks: The processes that hold the experts.

    Raises:
        RunError: If the package mnmt-moe-ext is not installed.
    """

    def __init__(self, config: ModelConfig, dropout: float, ranks: ExpertRanks) -> None:
        super().__init__()
        extension()
        self.config = config
        self.gate = nn.Linear(config.d_model, config.num_experts, bias=False)
        self.experts = Experts(config, dropout, ranks)
        self.number = 0
        """The mixture's place among all mixtures of the model, from 0."""

    def forward(self, x: Tensor, routes: TokenRoutes | None = None) -> Tensor:
        """Map `x (num_tokens, d_model)` to the same shape.

        Args:
            x: The states.
            routes: Describes the tokens, in training.
        """
        logits = F.linear(x.float(), self.gate.weight.float())[None]
        if routes is not None:
            factor, most_tokens = self.config.capacity_factor, routes.most_tokens
            routing = self._route(logits, factor, **self._policy(logits, routes))
            routes.record(self.number, routing)
        elif factor := self.config.eval_capacity_factor:
            routing, most_tokens = self._route(logits, factor), self.experts.ranks.max(len(x))
        else:
            return self._without_limit(x, self._route(logits, None))
        capacity = self.config.expert_capacity(most_tokens, factor)
        is_alone = x.device.type == "cpu" and self.experts.ranks.size == 1
        return self._with_slots(x, routing, bin_size=round_rows(capacity) if is_alone else capacity)

    def _route(self, logits: Tensor, factor: float | None, **policy: Any) -> Routing:
        routing: Routing = operators(logits.device.type).top2_gate(
            logits,
            capacity=None if factor is None else self.config.expert_capacity(logits.size(1), factor),
            threshold=self.config.second_expert_threshold,
            renormalise=self.config.renormalise,
            **policy,
        )
        return routing

    def _policy(self, logits: Tensor, routes: TokenRoutes) -> dict[str, Any]:
        """Return the gate's options that say how the second expert, or both, are chosen."""
        seed_and_step = routes.context.seed_and_step
        if routes.context.uniform:
            padding = logits.new_zeros(logits.shape[:2]).bool()
            choices = extension().uniform_choices(padding, self.config.num_experts, seed_and_step[1])
            return {"choices": choices, "second_expert_policy": "always"}
        if self.config.second_expert == "always":
            return {"second_expert_policy": "always"}
        return {
            "second_expert_policy": self.config.second_expert,
            "random_key": extension().RandomKey(seed_and_step=seed_and_step, layer=self.number),
            "token_ids": routes.ids[None],
        }

    def _with_slots(self, x: Tensor, routing: Routing, *, bin_size: int) -> Tensor:
        """Compute with the same number of rows for every expert, in every process."""
        ops = operators(x.device.type)
        layout = ops.capacity_layout(routing, bin_size=bin_size)
        outputs = self.experts(ops.dispatch(x[None], layout))
        combined: Tensor = ops.combine(outputs, routing.weights, layout)
        return combined.squeeze(0)

    def _without_limit(self, x: Tensor, routing: Routing) -> Tensor:
        """Compute with as many rows for each expert as there are tokens that chose it."""
        ops = operators(x.device.type)
        layout = ops.ragged_layout(routing)
        outputs = self.experts.ragged(ops.dispatch(x[None], layout), layout.ends)
        combined: Tensor = ops.combine(outputs, routing.weights, layout)
        return combined.squeeze(0)


class Experts(nn.Module):
    """FFN_e(x) = wo_e ReLU(wi_e x), for every expert e (Lepikhin et al. 2021, GShard, eq. 2).

    Args:
        config: Widths and number of experts.
        dropout: Rate of the hidden states.
        ranks: The processes that hold the experts; each has the weights of its own.
    """

    def __init__(self, config: ModelConfig, dropout: float, ranks: ExpertRanks) -> None:
        super().__init__()
        self.ranks = ranks
        self.local_experts = ranks.local_experts(config.num_experts)
        wi = torch.empty(len(self.local_experts), config.d_model, config.d_ff)
        wo = torch.empty(len(self.local_experts), config.d_ff, config.d_model)
        self.wi, self.wo = (nn.Parameter(ranks.distribute(weight)) for weight in (wi, wo))
        self.dropout = Dropout(dropout)
        self.products = TORCH

    def forward(self, buffers: Tensor) -> Tensor:
        """Map `buffers (num_experts, rows, d_model)` to the same shape, the rows of each expert by it."""
        if self.ranks.size == 1:
            return self._batched(buffers)
        exchanged: Tensor = extension().apply_experts(
            self._batched, buffers, group=self.ranks.group, num_chunks=self.ranks.chunks
        )
        return exchanged

    def ragged(self, rows: Tensor, ends: Tensor) -> Tensor:
        """Map `rows (num_rows, d_model)` to the same shape, each by its expert.

        Args:
            rows: The rows of the first expert, then those of the second, and so on.
            ends: `(num_experts,)` int64, the row after the last of each expert.
        """
        if self.ranks.size == 1:
            return self._ragged(rows, ends)
        exchanged: Tensor = extension().apply_experts_ragged(self._ragged, rows, ends, group=self.ranks.group)
        return exchanged

    def _batched(self, buffers: Tensor) -> Tensor:
        hidden = self.dropout(F.relu(self.products.experts(buffers, _local(self.wi, buffers))))
        return self.products.experts(hidden, _local(self.wo, buffers))

    def _ragged(self, rows: Tensor, ends: Tensor) -> Tensor:
        hidden = self.dropout(F.relu(self.products.ragged_experts(rows, _local(self.wi, rows), ends)))
        return self.products.ragged_experts(hidden, _local(self.wo, rows), ends)


def _local(weight: Tensor, like: Tensor) -> Tensor:
    """Return the weights of the experts that this process holds, in the precision of the states."""
    return (weight.to_local() if isinstance(weight, DTensor) else weight).to(like.dtype)
