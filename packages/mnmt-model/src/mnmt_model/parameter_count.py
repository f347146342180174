"""Parameter and FLOP counts in closed form (Fernandes et al. 2023, Appendix A)."""

from __future__ import annotations

from dataclasses import dataclass

from mnmt_model.positions import NUM_BUCKETS
from mnmt_model.shape import Shape


@dataclass(frozen=True, kw_only=True)
class Count:
    """Parameters of a model, by part.

    N, the `size` of the scaling laws, leaves out the input embedding and the softmax.
    """

    encoder_size: int
    decoder_size: int
    embedding: int
    softmax: int

    @property
    def size(self) -> int:
        """N: encoder and decoder."""
        return self.encoder_size + self.decoder_size

    @property
    def num_params(self) -> int:
        """All parameters."""
        return self.size + self.embedding + self.softmax

    def training_flops(self, *, src_tokens: int, tgt_tokens: int) -> int:
        """FLOPs of a training step: 6 a weight and token that passes it, attention scores left out.

        Source tokens pass the encoder and the keys and values of the decoder's cross-attention; those
        last are counted with the target tokens, as is usual.
        """
        per_target = self.decoder_size + self.softmax
        return 6 * (self.encoder_size * src_tokens + per_target * tgt_tokens)


def count(shape: Shape, vocab_size: int) -> Count:
    """Count the parameters of a T5 1.1 encoder-decoder without building it.

    N = L_enc (A + F) + L_dec (2A + F) + (2 L_enc + 3 L_dec + 2) d_model + 2 · 32 · heads,
    with A = 4 · d_model · heads · head_dim and F = 3 · d_model · d_ff.
    """
    attention = 4 * shape.d_model * shape.d_attention
    feed_forward = 3 * shape.d_model * shape.d_ff
    relative_bias = NUM_BUCKETS * shape.num_heads
    encoder_layer = attention + feed_forward + 2 * shape.d_model
    decoder_layer = 2 * attention + feed_forward + 3 * shape.d_model
    stack = shape.d_model + relative_bias
    return Count(
        encoder_size=shape.encoder_layers * encoder_layer + stack,
        decoder_size=shape.decoder_layers * decoder_layer + stack,
        embedding=vocab_size * shape.d_model,
        softmax=vocab_size * shape.d_model,
    )
