"""The shape of a T5 1.1 encoder-decoder."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Layer counts and widths of a T5 1.1 encoder-decoder.

    The attention's inner width is `num_heads * head_dim`, which may differ from `d_model`.
    """

    encoder_layers: int = 1
    """Layers of the encoder."""
    decoder_layers: int = 1
    """Layers of the decoder."""
    d_model: int = 64
    """Width of the residual stream."""
    num_heads: int = 4
    """Attention heads of every layer."""
    head_dim: int = 16
    """Width of one head."""
    d_ff: int = 256
    """Inner width of the gated feed-forward."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value < 1:
                raise ValueError(f"`{field.name}` must be at least 1, but is {value}.")

    @property
    def d_attention(self) -> int:
        """Inner width of the attention, `num_heads * head_dim`."""
        return self.num_heads * self.head_dim
