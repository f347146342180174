"""The mixture-of-experts feed-forward: a gate and its experts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_model.transformer.capacity import expert_capacity
from mnmt_model.transformer.experts.operators import extension, operators
from mnmt_model.transformer.experts.ranks import ExpertRanks
from mnmt_model.transformer.experts.routes import TokenRoutes
from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.modules import Dropout
from mnmt_model.transformer.products import linear, side_by_side

if TYPE_CHECKING:
    from mnmt_model.transformer.experts.operators import Routing


class MixtureOfExperts(nn.Module):
    """y = Σ_e G_e wo_e ReLU(wi_e x), over the two experts e that the gate G chooses for a token.

    Lepikhin et al. 2021 (GShard), eqs. 1-3 and algorithm 1. In training an expert has only so many slots,
    and a token whose choices are both dropped gets 0: the residual carries it.

    Args:
        config: Of the model.
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
        """Among all mixtures of a model."""

    def forward(self, x: Tensor, routes: TokenRoutes | None = None) -> Tensor:
        """Map `x (num_tokens, d_model)` to the same shape.

        Args:
            x: States.
            routes: What is known of the tokens, in training.
        """
        logits = F.linear(x.float(), self.gate.weight.float())[None]
        if routes is not None:
            factor, most_tokens = self.config.capacity_factor, routes.most_tokens
            routing = self._route(logits, factor, **self._policy(logits, routes))
            routes.record(self.number, routing)
        elif factor := self.config.eval_capacity_factor:
            routing, most_tokens = self._route(logits, factor), self.experts.ranks.most(len(x))
        else:
            return self._without_limit(x, self._route(logits, None))
        return self._with_slots(x, routing, bin_size=self._capacity(most_tokens, factor))

    def _route(self, logits: Tensor, factor: float | None, **policy: Any) -> Routing:
        routing: Routing = operators(logits.device.type).top2_gate(
            logits,
            capacity=None if factor is None else self._capacity(logits.size(1), factor),
            threshold=self.config.second_expert_threshold,
            renormalise=self.config.renormalise,
            **policy,
        )
        return routing

    def _policy(self, logits: Tensor, routes: TokenRoutes) -> dict[str, Any]:
        """How the second expert is chosen, or both."""
        seed_and_step = routes.gating.seed_and_step
        if routes.gating.uniform:
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

    def _capacity(self, num_tokens: int, factor: float) -> int:
        return expert_capacity(num_tokens, self.config.num_experts, factor)

    def _with_slots(self, x: Tensor, routing: Routing, *, bin_size: int) -> Tensor:
        """As many rows for every expert, in every process."""
        ops = operators(x.device.type)
        layout = ops.capacity_layout(routing, bin_size=bin_size)
        outputs = self.experts(ops.dispatch(x[None], layout))
        combined: Tensor = ops.combine(outputs, routing.weights, layout)
        return combined.squeeze(0)

    def _without_limit(self, x: Tensor, routing: Routing) -> Tensor:
        """As many rows for each expert as tokens chose it."""
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
        ranks: The processes that hold them; each has the weights of its own.
    """

    def __init__(self, config: ModelConfig, dropout: float, ranks: ExpertRanks) -> None:
        super().__init__()
        self.ranks = ranks
        self.here = ranks.local(config.num_experts)
        wi = torch.empty(len(self.here), config.d_model, config.d_ff)
        wo = torch.empty(len(self.here), config.d_ff, config.d_model)
        self.wi, self.wo = (nn.Parameter(ranks.distribute(weight)) for weight in (wi, wo))
        self.dropout = Dropout(dropout)

    def forward(self, buffers: Tensor) -> Tensor:
        """Map `buffers (num_experts, rows, d_model)`, each expert's rows by it, to the same shape."""
        if self.ranks.size == 1:
            return self._side_by_side(buffers)
        exchanged: Tensor = extension().apply_experts(
            self._side_by_side, buffers, group=self.ranks.group, num_chunks=self.ranks.chunks
        )
        return exchanged

    def ragged(self, rows: Tensor, ends: Tensor) -> Tensor:
        """Map `rows (num_rows, d_model)`, of which those before `ends (num_experts,)` are each expert's."""
        if self.ranks.size == 1:
            return self._one_by_one(rows, ends)
        exchanged: Tensor = extension().apply_experts_ragged(
            self._one_by_one, rows, ends, group=self.ranks.group
        )
        return exchanged

    def _side_by_side(self, buffers: Tensor) -> Tensor:
        hidden = self.dropout(F.relu(side_by_side(buffers, _local(self.wi, buffers))))
        return side_by_side(hidden, _local(self.wo, buffers))

    def _one_by_one(self, rows: Tensor, ends: Tensor) -> Tensor:
        wi, wo = _local(self.wi, rows), _local(self.wo, rows)
        outputs = torch.zeros_like(rows)
        start = 0
        for expert, end in enumerate(ends.tolist()):
            if end > start:
                hidden = self.dropout(F.relu(linear(rows[start:end], wi[expert].T)))
                outputs[start:end] = linear(hidden, wo[expert].T)
            start = end
        return outputs


def _local(weight: Tensor, like: Tensor) -> Tensor:
    """The weights of the experts here, in the precision of the states."""
    return (weight.to_local() if isinstance(weight, DTensor) else weight).to(like.dtype)
