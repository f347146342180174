"""A model seen one target token at a time, as search wants it."""

from __future__ import annotations

import torch
from torch import Tensor

from mnmt_model.transformer.decoding.flat_state import FlatState
from mnmt_model.transformer.decoding.state import DecoderState
from mnmt_model.transformer.sentences import PAD, Sentences
from mnmt_model.transformer.translation_model import TranslationModel


class IncrementalModel:
    """Reads sources, then scores one more token of every hypothesis a step.

    In one of two ways, with the same results: `encode` and `step` have a row a hypothesis, in any order and
    number; `start_flat` and `step_flat` have `beam` hypotheses of every source, and move nothing when these
    branch.
    """

    def __init__(self, model: TranslationModel) -> None:
        self.model = model.eval()

    @torch.inference_mode()
    def encode(self, src: Tensor, padding_mask: Tensor) -> DecoderState:
        """State before the first target token.

        Args:
            src: `(batch, src_len)` token ids.
            padding_mask: `(batch, src_len)`, True at padding.
        """
        return self.model.start(_sentences(src, padding_mask))

    @torch.inference_mode()
    def step(self, state: DecoderState, tokens: Tensor) -> tuple[Tensor, DecoderState]:
        """Log-probabilities `(rows, vocab_size)` of what follows `tokens (rows,)`, and the state there."""
        logits, state = self.model.step(state, tokens)
        return _log_probs(logits), state

    @torch.inference_mode()
    def start_flat(self, src: Tensor, padding_mask: Tensor, *, beam: int, max_steps: int) -> FlatState:
        """State before the first target token, for `beam` hypotheses of every source.

        Args:
            src: `(batch, src_len)` token ids.
            padding_mask: `(batch, src_len)`, True at padding.
            beam: Hypotheses of a source.
            max_steps: How often `step_flat` is called at most.
        """
        # Buffers grow step by step, so that short translations take no room for long ones.
        return self.model.start_flat(_sentences(src, padding_mask), beam=beam)

    @torch.inference_mode()
    def step_flat(
        self, state: FlatState, tokens: Tensor, ancestors: Tensor, positions: Tensor
    ) -> tuple[Tensor, FlatState]:
        """Log-probabilities of what follows, and the state there.

        Args:
            state: Of every source.
            tokens: `(batch, beam)` int64, the token each hypothesis is continued by; 0 at first.
            ancestors: `(batch, beam, beam * steps)` bool with `steps` counting this one, the slots each
                hypothesis consists of: its token's own, the last `beam` in the order of the beam, and those
                before.
            positions: `(batch, beam)` int64, the place of each token in its hypothesis, from 0.

        Returns:
            `(batch, beam, vocab_size)` float32, and the state after `tokens`.
        """
        logits, state = self.model.step_flat(state, tokens, ancestors, positions)
        return _log_probs(logits), state


def _sentences(src: Tensor, padding_mask: Tensor) -> Sentences:
    return Sentences.from_padded(src.masked_fill(padding_mask, PAD))


def _log_probs(logits: Tensor) -> Tensor:
    logits = logits.float()
    # In place: they are the largest tensor there is, and nobody else has them.
    return torch.log_softmax(logits, -1, out=logits)
