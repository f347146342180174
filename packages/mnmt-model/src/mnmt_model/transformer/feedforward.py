"""The feed-forward sublayer."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_model.transformer.dropout import Dropout
from mnmt_model.transformer.expert_ranks import ALONE, ExpertRanks
from mnmt_model.transformer.linear import Linear
from mnmt_model.transformer.mixture_of_experts import MixtureOfExperts
from mnmt_model.transformer.model_config import ModelConfig


class GatedFeedForward(nn.Module):
    """wo(GELU(wi_0 x) * wi_1 x), with the tanh approximation of GELU, as in T5 1.1."""

    def __init__(self, config: ModelConfig, dropout: float) -> None:
        super().__init__()
        self.wi_0 = Linear(config.d_model, config.d_ff, bias=config.biases)
        self.wi_1 = Linear(config.d_model, config.d_ff, bias=config.biases)
        self.wo = Linear(config.d_ff, config.d_model, bias=config.biases)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map `(num_tokens, d_model)` to the same shape."""
        hidden = F.gelu(self.wi_0(x), approximate="tanh") * self.wi_1(x)
        output: Tensor = self.wo(self.dropout(hidden))
        return output


class ReLUFeedForward(nn.Module):
    """wo(ReLU(wi x)), as in Vaswani et al. 2017."""

    def __init__(self, config: ModelConfig, dropout: float) -> None:
        super().__init__()
        self.wi = Linear(config.d_model, config.d_ff, bias=config.biases)
        self.wo = Linear(config.d_ff, config.d_model, bias=config.biases)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map `(num_tokens, d_model)` to the same shape."""
        output: Tensor = self.wo(self.dropout(F.relu(self.wi(x))))
        return output


def make_feed_forward(
    config: ModelConfig, dropout: float, *, layer: int = 0, ranks: ExpertRanks = ALONE
) -> nn.Module:
    """The feed-forward that `config` names for the layer of this index in its stack."""
    if config.has_experts(layer):
        return MixtureOfExperts(config, dropout, ranks)
    kinds = {"gated-gelu": GatedFeedForward, "relu": ReLUFeedForward}
    return kinds[config.feed_forward](config, dropout)
