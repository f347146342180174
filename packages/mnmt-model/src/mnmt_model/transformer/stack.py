"""A stack of layers: an encoder, a decoder, or the one stack of a language model."""

from __future__ import annotations

from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from mnmt_model.transformer.attention import Pattern
from mnmt_model.transformer.experts.ranks import SINGLE_RANK, ExpertRanks
from mnmt_model.transformer.experts.routes import TokenRoutes
from mnmt_model.transformer.layer import Layer
from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.modules import Dropout, make_norm
from mnmt_model.transformer.positions import RelativePositionBias, causal_bias, padding_bias
from mnmt_model.transformer.sentences import Sentences


class Stack(nn.Module):
    """Layers, with one relative position bias and a final norm if `config` has them.

    Args:
        config: The model's config.
        num_layers: The number of layers.
        cross: Whether the layers have cross-attention.
        causal: Whether the position bias distinguishes only tokens before the query.
        dropout: The rate.
        ranks: The processes that hold the stack's experts, if it has any.
    """

    def __init__(
        self,
        config: ModelConfig,
        num_layers: int,
        *,
        cross: bool,
        causal: bool,
        dropout: float,
        ranks: ExpertRanks = SINGLE_RANK,
    ) -> None:
        super().__init__()
        has_bias, has_norm = config.positions == "relative", config.norm_order == "pre"
        self.position_bias = (
            RelativePositionBias(config.num_heads, bidirectional=not causal) if has_bias else None
        )
        self.layers = nn.ModuleList(
            Layer(config, index, cross=cross, dropout=dropout, ranks=ranks) for index in range(num_layers)
        )
        self.norm = make_norm(config) if has_norm else None
        self.has_cross_attention = cross
        self.dropout = Dropout(dropout)
        self.checkpointing = False
        """Whether to recompute layers in the backward pass instead of storing activations."""

    def forward(
        self,
        x: Tensor,
        pattern: Pattern,
        cross: Pattern | None = None,
        source: Tensor | None = None,
        routes: TokenRoutes | None = None,
    ) -> Tensor:
        """Return the top states `(num_tokens, d_model)` before the last norm.

        Args:
            x: Embedded tokens `(num_tokens, d_model)`.
            pattern: The pattern of every layer's attention.
            cross: The pattern of every layer's cross-attention, in a decoder.
            source: States `(source tokens, d_model)` that every attention has as keys before `x`.
            routes: The tokens, for mixtures of experts in training.
        """
        x = self.dropout(x)
        for layer in self.layers:
            if self.checkpointing and self.training:
                x = checkpoint(layer, x, pattern, cross, source, routes, use_reentrant=False)
            else:
                x = layer(x, pattern, cross, source, routes)
        return x

    def finish(self, x: Tensor) -> Tensor:
        """Return the stack's output for its top states `x (num_tokens, d_model)`."""
        return x if self.norm is None else self.dropout(self.norm(x))

    def self_bias(self, sentences: Sentences, *, causal: bool, like: Tensor) -> Tensor:
        """Return the bias `(batch or 1, num_heads or 1, width, width)` of self-attention.

        Args:
            sentences: The sentences that attend to themselves.
            causal: Whether a token attends only to itself and earlier tokens. Padding comes last, so no token
                attends to it.
            like: A tensor of the states' precision and device.
        """
        positions = self.positional_bias(sentences.width, sentences.width, like)
        if causal:
            return positions + causal_bias(sentences.width, sentences.width, like)
        return positions + padding_bias(sentences.padding_mask, like.dtype)

    def positional_bias(self, query_len: int, key_len: int, like: Tensor) -> Tensor:
        """Return the position bias `(1, num_heads or 1, query_len, key_len)`; zeros if the model has none."""
        if self.position_bias is None:
            return like.new_zeros(1, 1, query_len, key_len)
        bias: Tensor = self.position_bias(query_len, key_len)
        return bias.to(like.dtype)[None]
