"""A model seen one target token at a time, as search wants it."""

from __future__ import annotations

import torch
from torch import Tensor

from mnmt_model.transformer.cache import DecoderState
from mnmt_model.transformer.sentences import PAD, Sentences
from mnmt_model.transformer.translation_model import TranslationModel


class IncrementalModel:
    """Reads sources, then scores one more token of every hypothesis a step."""

    def __init__(self, model: TranslationModel) -> None:
        self.model = model.eval()

    @torch.inference_mode()
    def encode(self, src: Tensor, padding_mask: Tensor) -> DecoderState:
        """State before the first target token.

        Args:
            src: `(batch, src_len)` token ids.
            padding_mask: `(batch, src_len)`, True at padding.
        """
        return self.model.start(Sentences.from_padded(src.masked_fill(padding_mask, PAD)))

    @torch.inference_mode()
    def step(self, state: DecoderState, tokens: Tensor) -> tuple[Tensor, DecoderState]:
        """Log-probabilities `(rows, vocab_size)` of what follows `tokens (rows,)`, and the state there."""
        logits, state = self.model.step(state, tokens)
        return logits.float().log_softmax(-1), state
