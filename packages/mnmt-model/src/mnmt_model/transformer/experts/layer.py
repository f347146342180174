"""The mixture-of-experts feed-forward: a gate and its experts."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from mnmt_model.transformer.experts.experts import Experts
from mnmt_model.transformer.experts.gate import Gate
from mnmt_model.transformer.experts.operators import extension, operators
from mnmt_model.transformer.experts.ranks import ExpertRanks, sends_tokens
from mnmt_model.transformer.experts.routes import TokenRoutes
from mnmt_model.transformer.feed_forward import make_feed_forward
from mnmt_model.transformer.model_config import ModelConfig


class MixtureOfExperts(nn.Module):
    """y = Σ_e G_e FFN_e(x) over the experts e chosen by the gate G for x, + FFN(x) for shared experts.

    Lepikhin et al. 2021 (GShard), eqs. 1-3 and algorithm 1; Dai et al. 2024 (DeepSeekMoE), eq. 9, for shared
    experts, which are one feed-forward. In training an expert can have a limited number of slots. The sum is
    0 for a token whose choices are all dropped.

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
        self.gate = Gate(config)
        self.experts = Experts(config, dropout, ranks)
        if config.shared_experts:
            self.shared = make_feed_forward(
                config.expert_feed_forward,
                config.d_model,
                config.shared_experts * config.d_ff,
                biases=False,
                dropout=dropout,
            )

    def forward(self, x: Tensor, routes: TokenRoutes | None = None) -> Tensor:
        """Map `x (num_tokens, d_model)` to the same shape.

        Args:
            x: The states.
            routes: The tokens, in training or for counting choices.
        """
        y = self._weighted_sum(x, routes)
        return y + self.shared(x) if self.config.shared_experts else y

    def _weighted_sum(self, x: Tensor, routes: TokenRoutes | None) -> Tensor:
        """Compute each token's chosen experts."""
        gate, ops, ranks = self.gate, operators(x.device.type), self.experts.ranks
        rows = self._rows_of_expert(x, routes)
        routing, layout = gate(x, routes, rows=rows)
        if rows is None and ranks.size > 1:
            return self.experts.exchange(x, routing)
        buffers = ops.dispatch(x[None], layout)
        outputs = self.experts(buffers) if layout.ends is None else self.experts.ragged(buffers, layout.ends)
        combined: Tensor = ops.combine(outputs, routing.weights, layout)
        return combined.squeeze(0)

    def _rows_of_expert(self, x: Tensor, routes: TokenRoutes | None) -> int | None:
        """Return the number of rows of each expert for a group in all processes; None for one row a token.

        Empty slots cost time on a CPU; GPUs and exchanges need shapes that are known in advance.
        """
        factor, ranks = self.config.capacity_factor, self.experts.ranks
        is_single_cpu = x.is_cpu and ranks.size == 1 and not torch.compiler.is_compiling()
        if routes is None or not factor or not self.training or is_single_cpu:
            return None
        tokens = routes.most_tokens
        rows = self.config.expert_capacity(tokens, factor)
        capacity = self.config.num_groups(tokens) * rows
        sends = sends_tokens(self.config, ranks=ranks.size, tokens=tokens, capacity=capacity)
        return None if sends else rows
