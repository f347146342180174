"""The encoder: pre-norm layers of self-attention and feed-forward."""

from __future__ import annotations

from torch import Tensor, nn

from mnmt_model.attention import Attention
from mnmt_model.feedforward import GatedFeedForward
from mnmt_model.positions import RelativePositionBias
from mnmt_model.shape import Shape

EPSILON = 1e-6
"""Of every RMSNorm."""


class EncoderLayer(nn.Module):
    """x + attention(norm(x)), then x + feed_forward(norm(x))."""

    def __init__(self, shape: Shape, dropout: float) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(shape.d_model, eps=EPSILON)
        self.attention = Attention(shape, dropout)
        self.feed_forward_norm = nn.RMSNorm(shape.d_model, eps=EPSILON)
        self.feed_forward = GatedFeedForward(shape, dropout)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        """Map `(batch, src_len, d_model)` to the same shape."""
        normed = self.attention_norm(x)
        keys, values = self.attention.project(normed)
        x = x + self.dropout(self.attention.attend(normed, keys, values, bias))
        x = x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))
        return x


class Encoder(nn.Module):
    """A stack of encoder layers with one relative position bias and a final norm."""

    def __init__(self, shape: Shape, dropout: float) -> None:
        super().__init__()
        self.position_bias = RelativePositionBias(shape.num_heads, bidirectional=True)
        self.layers = nn.ModuleList(EncoderLayer(shape, dropout) for _ in range(shape.encoder_layers))
        self.norm = nn.RMSNorm(shape.d_model, eps=EPSILON)
        self.dropout = nn.Dropout(dropout)

    def forward(self, embedded: Tensor, padding_bias: Tensor | None) -> Tensor:
        """Encode `embedded (batch, src_len, d_model)`.

        Args:
            embedded: embedded source tokens.
            padding_bias: `(batch, 1, 1, src_len)`, -inf at padding and 0 elsewhere; None if there is none.

        Returns:
            Source states `(batch, src_len, d_model)`.
        """
        length = embedded.size(1)
        bias = self.position_bias(length, length)
        if padding_bias is not None:
            bias = bias + padding_bias
        x = self.dropout(embedded)
        for layer in self.layers:
            x = layer(x, bias)
        output: Tensor = self.dropout(self.norm(x))
        return output
