"""The experts of one mixture: feed-forwards side by side."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_model.transformer.dropout import Dropout
from mnmt_model.transformer.expert_operators import extension
from mnmt_model.transformer.expert_ranks import ExpertRanks
from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.products import linear, side_by_side


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
