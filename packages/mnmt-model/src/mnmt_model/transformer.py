"""The T5 1.1 encoder-decoder."""

from __future__ import annotations

from torch import Tensor, nn

from mnmt_model.decoder import Decoder
from mnmt_model.encoder import Encoder
from mnmt_model.shape import Shape

PAD = 0
"""Padding, and the token every target starts from."""


class EncoderDecoder(nn.Module):
    """T5 1.1: shared input embedding, untied softmax, neither scaled (Fernandes et al. 2023, App. A)."""

    def __init__(self, shape: Shape, vocab_size: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.shape = shape
        self.vocab_size = vocab_size
        self.embedding = nn.Embedding(vocab_size, shape.d_model)
        self.encoder = Encoder(shape, dropout)
        self.decoder = Decoder(shape, dropout)
        self.softmax = nn.Linear(shape.d_model, vocab_size, bias=False)

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Logits of every target position.

        Args:
            src: `(batch, src_len)` token ids; 0 is padding.
            tgt_in: `(batch, tgt_len)` target shifted right, so that it starts with 0.

        Returns:
            Logits `(batch, tgt_len, vocab_size)`.
        """
        padding_bias = self.padding_bias(src == PAD)
        memory = self.encode(src, padding_bias)
        states, _ = self.decoder(self.embedding(tgt_in), self.decoder.start(memory), padding_bias)
        logits: Tensor = self.softmax(states)
        return logits

    def encode(self, src: Tensor, padding_bias: Tensor | None) -> Tensor:
        """Source states `(batch, src_len, d_model)` of `src (batch, src_len)`."""
        memory: Tensor = self.encoder(self.embedding(src), padding_bias)
        return memory

    def padding_bias(self, padding_mask: Tensor) -> Tensor:
        """Attention bias `(batch, 1, 1, src_len)` that hides what `padding_mask (batch, src_len)` marks."""
        bias = padding_mask.new_zeros(padding_mask.shape, dtype=self.embedding.weight.dtype)
        return bias.masked_fill_(padding_mask, -float("inf"))[:, None, None, :]
