"""One layer of any stack: attention, cross-attention and feed-forward."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_model.transformer.attention import Attention, Pattern
from mnmt_model.transformer.experts.layer import MixtureOfExperts
from mnmt_model.transformer.experts.ranks import ALONE, ExpertRanks
from mnmt_model.transformer.experts.routes import TokenRoutes
from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.modules import Dropout, Linear, make_norm


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


class Layer(nn.Module):
    """Attention, cross-attention in a decoder, and feed-forward, each with its residual and norm.

    Args:
        config: Of the model.
        index: Of the layer in its stack, from 0.
        cross: Whether it has cross-attention.
        dropout: Rate.
        ranks: The processes that hold its experts, if it has any.
    """

    def __init__(
        self, config: ModelConfig, index: int, *, cross: bool, dropout: float, ranks: ExpertRanks = ALONE
    ) -> None:
        super().__init__()
        self.is_pre_norm = config.norm_order == "pre"
        self.attention_norm = make_norm(config)
        self.attention = Attention(config, dropout)
        if cross:
            self.cross_norm = make_norm(config)
            self.cross_attention = Attention(config, dropout)
        self.feed_forward_norm = make_norm(config)
        self.feed_forward = make_feed_forward(config, dropout, layer=index, ranks=ranks)
        self.has_experts = config.has_experts(index)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        pattern: Pattern,
        cross: Pattern | None = None,
        source: Tensor | None = None,
        routes: TokenRoutes | None = None,
    ) -> Tensor:
        """Map `x (num_tokens, d_model)` to the same shape.

        Args:
            x: States of the layer below.
            pattern: Of the attention.
            cross: Of the cross-attention, in a decoder.
            source: `(source tokens, d_model)` states that the attention sees before `x`.
            routes: What a mixture of experts knows of the tokens, in training.
        """
        x = self._add(x, self.attention_norm, lambda states: self.attention(states, pattern), source)
        if cross is not None:
            x = self._add(x, self.cross_norm, lambda states: self.cross_attention(states, cross))
        feed_forward = partial(self.feed_forward, routes=routes) if self.has_experts else self.feed_forward
        return self._add(x, self.feed_forward_norm, feed_forward)

    def _add(
        self, x: Tensor, norm: nn.Module, sublayer: Callable[[Tensor], Tensor], source: Tensor | None = None
    ) -> Tensor:
        """X + sublayer(norm(x)), or norm(x + sublayer(x))."""
        states = x if source is None else torch.cat([source, x])
        if self.is_pre_norm:
            added: Tensor = x + self.dropout(sublayer(norm(states)))
        else:
            added = norm(x + self.dropout(sublayer(states)))
        return added
