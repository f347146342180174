"""An encoder-decoder seen one target token at a time, as search wants it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mnmt_model.decoder import LayerCache
from mnmt_model.transformer import EncoderDecoder


@dataclass(frozen=True, kw_only=True)
class DecoderState:
    """Caches of every layer and the source's padding, a row a hypothesis."""

    caches: Sequence[LayerCache]
    padding_bias: Tensor

    def select(self, rows: Tensor) -> DecoderState:
        """The state of the given rows `(n,)`, which may repeat and leave out."""
        caches = [cache.select(rows) for cache in self.caches]
        return DecoderState(caches=caches, padding_bias=self.padding_bias[rows])


class IncrementalModel:
    """Encodes sources, then scores one more token of every hypothesis a step."""

    def __init__(self, model: EncoderDecoder) -> None:
        self.model = model.eval()

    @torch.inference_mode()
    def encode(self, src: Tensor, padding_mask: Tensor) -> DecoderState:
        """State before the first target token.

        Args:
            src: `(batch, src_len)` token ids.
            padding_mask: `(batch, src_len)`, True at padding.
        """
        padding_bias = self.model.padding_bias(padding_mask)
        memory = self.model.encode(src, padding_bias)
        return DecoderState(caches=self.model.decoder.start(memory), padding_bias=padding_bias)

    @torch.inference_mode()
    def step(self, state: DecoderState, tokens: Tensor) -> tuple[Tensor, DecoderState]:
        """Log-probabilities `(rows, vocab_size)` of what follows `tokens (rows,)`, and the state there."""
        embedded = self.model.embedding(tokens[:, None])
        states, caches = self.model.decoder(embedded, state.caches, state.padding_bias)
        log_probs = self.model.softmax(states[:, -1]).float().log_softmax(-1)
        return log_probs, DecoderState(caches=caches, padding_bias=state.padding_bias)
