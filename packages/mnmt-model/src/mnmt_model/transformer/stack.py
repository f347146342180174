"""A stack of layers: an encoder, a decoder, or a language model's only one."""

from __future__ import annotations

from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from mnmt_model.transformer.attention import Pattern, RelativePositionBias, causal_mask, padding_mask
from mnmt_model.transformer.experts.ranks import ALONE, ExpertRanks
from mnmt_model.transformer.experts.routes import TokenRoutes
from mnmt_model.transformer.layer import Layer
from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.modules import Dropout, make_norm
from mnmt_model.transformer.sentences import Sentences


class Stack(nn.Module):
    """Layers with, as `config` says, one relative position bias and a last norm.

    Args:
        config: Of the model.
        num_layers: Of this stack.
        cross: Whether the layers have cross-attention.
        causal: Whether a position bias knows only tokens before the query.
        dropout: Rate.
        ranks: The processes that hold its experts, if it has any.
    """

    def __init__(
        self,
        config: ModelConfig,
        num_layers: int,
        *,
        cross: bool,
        causal: bool,
        dropout: float,
        ranks: ExpertRanks = ALONE,
    ) -> None:
        super().__init__()
        if config.positions == "relative":
            self.position_bias = RelativePositionBias(config.num_heads, bidirectional=not causal)
        self.layers = nn.ModuleList(
            Layer(config, index, cross=cross, dropout=dropout, ranks=ranks) for index in range(num_layers)
        )
        if config.norm_order == "pre":
            self.norm = make_norm(config)
        self.has_cross_attention = cross
        self.dropout = Dropout(dropout)
        self.checkpointing = False
        """Whether layers are computed again for the backward pass, instead of kept."""

    def forward(
        self,
        x: Tensor,
        pattern: Pattern,
        cross: Pattern | None = None,
        source: Tensor | None = None,
        routes: TokenRoutes | None = None,
    ) -> Tensor:
        """Top states `(num_tokens, d_model)` before the last norm; arguments as those of a layer."""
        x = self.dropout(x)
        for layer in self.layers:
            if self.checkpointing and self.training:
                x = checkpoint(layer, x, pattern, cross, source, routes, use_reentrant=False)
            else:
                x = layer(x, pattern, cross, source, routes)
        return x

    def finish(self, x: Tensor) -> Tensor:
        """What the stack gives out, of its top states."""
        output: Tensor = self.dropout(self.norm(x)) if hasattr(self, "norm") else x
        return output

    def bias(self, sentences: Sentences, *, causal: bool, like: Tensor) -> Tensor:
        """Bias `(batch, num_heads or 1, width, width)` of sentences that attend to themselves."""
        if causal:
            return self.causal_bias(sentences.width, sentences.width, like)
        positions = self.positions(sentences.width, sentences.width, like)
        return positions + padding_mask(sentences.hidden, like.dtype)

    def causal_bias(self, query_len: int, key_len: int, like: Tensor) -> Tensor:
        """Bias `(1, num_heads or 1, query_len, key_len)` of the last positions, each seeing those before.

        Padding comes after what it fills up, so that no token sees it.
        """
        return self.positions(query_len, key_len, like) + causal_mask(query_len, key_len, like)

    def positions(self, query_len: int, key_len: int, like: Tensor) -> Tensor:
        """Position bias `(1, num_heads or 1, query_len, key_len)`, 0 if the model has none."""
        if not hasattr(self, "position_bias"):
            return like.new_zeros(1, 1, query_len, key_len)
        bias: Tensor = self.position_bias(query_len, key_len)
        return bias.to(like.dtype)[None]
