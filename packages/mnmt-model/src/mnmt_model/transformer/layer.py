"""One layer of any stack: attention, cross-attention and feed-forward."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from mnmt_model.transformer.attention import Attention, Pattern
from mnmt_model.transformer.experts.layer import MixtureOfExperts
from mnmt_model.transformer.experts.ranks import SINGLE_RANK, ExpertRanks
from mnmt_model.transformer.experts.routes import TokenRoutes
from mnmt_model.transformer.feed_forward import make_feed_forward
from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.modules import Dropout, make_norm


class Layer(nn.Module):
    """Attention, cross-attention in a decoder, and feed-forward, each with its residual and norm.

    Args:
        config: The model's config.
        index: The layer's index in its stack.
        cross: Whether the layer has cross-attention.
        dropout: The rate.
        ranks: The processes that hold the layer's experts, if it has any.
    """

    def __init__(
        self,
        config: ModelConfig,
        index: int,
        *,
        cross: bool,
        dropout: float,
        ranks: ExpertRanks = SINGLE_RANK,
    ) -> None:
        super().__init__()
        self.is_pre_norm = config.norm_order == "pre"
        self.attention_norm = make_norm(config)
        self.attention = Attention(config, dropout)
        if cross:
            self.cross_norm = make_norm(config)
            self.cross_attention = Attention(config, dropout)
        self.feed_forward_norm = make_norm(config)
        self.has_experts = config.has_experts(index)
        if self.has_experts:
            self.feed_forward: nn.Module = MixtureOfExperts(config, dropout, ranks)
        else:
            self.feed_forward = make_feed_forward(
                config.feed_forward, config.d_model, config.d_ff, biases=config.biases, dropout=dropout
            )
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
            x: The states of the layer below.
            pattern: The attention's pattern.
            cross: The cross-attention's pattern, in a decoder.
            source: States `(source tokens, d_model)` that the attention has as keys before `x`.
            routes: The tokens, for a mixture of experts in training.
        """
        x = self._add(x, self.attention_norm, lambda states: self.attention(states, pattern), source)
        if cross is not None:
            x = self._add(x, self.cross_norm, lambda states: self.cross_attention(states, cross))
        feed_forward = partial(self.feed_forward, routes=routes) if self.has_experts else self.feed_forward
        return self._add(x, self.feed_forward_norm, feed_forward)

    def _add(
        self, x: Tensor, norm: nn.Module, sublayer: Callable[[Tensor], Tensor], source: Tensor | None = None
    ) -> Tensor:
        """Return x + sublayer(norm(x)), or norm(x + sublayer(x))."""
        states = x if source is None else torch.cat([source, x])
        if self.is_pre_norm:
            return self.dropout.add(sublayer(norm(states)), residual=x)
        output: Tensor = norm(self.dropout.add(sublayer(states), residual=x))
        return output
