"""The experts of a mixture: their weights, and what they compute of the rows that they get."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from mnmt_model.transformer.experts.activation import Activation
from mnmt_model.transformer.experts.casts import Casts
from mnmt_model.transformer.experts.feed_forward import ExpertWeights, expert_feed_forward
from mnmt_model.transformer.experts.operators import extension
from mnmt_model.transformer.experts.ranks import ExpertRanks
from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.modules import Dropout
from mnmt_model.transformer.products import TORCH


class Experts(nn.Module):
    """FFN_e(x) = wo_e f(wi_e x), for every expert e (Lepikhin et al. 2021, GShard, eq. 2).

    A gated f has two linear maps in `wi`, side by side: of gated SiLU FFN_e(x) = wo_e (SiLU(a) * b), where a
    is the first half of wi_e x, and b the second.

    Args:
        config: Widths, number of experts and their f.
        dropout: Rate of the hidden states.
        ranks: The processes that hold the experts; each has the weights of its own.
    """

    def __init__(self, config: ModelConfig, dropout: float, ranks: ExpertRanks) -> None:
        super().__init__()
        self.ranks = ranks
        self.local_experts = ranks.local_experts(config.num_experts)
        self.activation = Activation(name=config.expert_feed_forward)
        width = self.activation.width * config.d_ff
        wi = torch.empty(len(self.local_experts), config.d_model, width)
        wo = torch.empty(len(self.local_experts), config.d_ff, config.d_model)
        self.wi, self.wo = (nn.Parameter(ranks.distribute(weight)) for weight in (wi, wo))
        self.casts = Casts()
        self.dropout = Dropout(dropout)
        self.products = TORCH

    def forward(self, buffers: Tensor) -> Tensor:
        """Map `buffers (num_experts, rows, d_model)` to the same shape, the rows of each expert by it."""
        if self.ranks.size == 1:
            return self._apply_local(buffers)
        exchanged: Tensor = extension().apply_experts(
            self._apply_local, buffers, group=self.ranks.group, num_chunks=self.ranks.chunks
        )
        return exchanged

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def ragged(self, rows: Tensor, ends: Tensor) -> Tensor:
        """Map `rows (num_rows, d_model)` to the same shape, each by its expert, which this process holds.

        Args:
            rows: The rows of the first expert, then those of the second, and so on.
            ends: `(num_experts,)` int32, the row after the last of each expert.
        """
        # Not compiled, since torch's compiler knows a product of ragged rows in bfloat16 alone.
        return self._apply_local(rows, ends)

    def _apply_local(self, x: Tensor, ends: Tensor | None = None) -> Tensor:
        """Apply the experts that this process holds."""
        activation = replace(self.activation, rate=self.dropout.training_rate)
        weights = ExpertWeights(*(self.casts.local(weight, x.dtype) for weight in (self.wi, self.wo)))
        return expert_feed_forward(x, ends, weights, activation, self.products)
