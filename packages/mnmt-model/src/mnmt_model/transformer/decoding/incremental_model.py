"""A model that scores one target token at a time, for search."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from mnmt_model.transformer.decoding.flat_state import FlatState
from mnmt_model.transformer.decoding.patterns import LayerPatterns
from mnmt_model.transformer.decoding.state import DecoderState
from mnmt_model.transformer.sentences import PAD, Sentences
from mnmt_model.transformer.translation_model import TranslationModel


class IncrementalModel:
    """Encodes sources, then scores the next token of every hypothesis in each step.

    There are two interfaces with the same results. `encode` and `step` have a row for each hypothesis, in any
    order and number. `start_flat` and `step_flat` have `beam` hypotheses of every source, and move no data
    when hypotheses branch.
    """

    def __init__(self, model: TranslationModel) -> None:
        self.translation_model = model.eval()

    def to(self, device: str) -> IncrementalModel:
        """Move the model to a device such as `cuda:1`, and return it."""
        return IncrementalModel(self.translation_model.to(device))

    @torch.inference_mode()
    def encode(self, src: Tensor, padding_mask: Tensor) -> DecoderState:
        """Return the state before the first target token.

        Args:
            src: `(batch, src_len)` token ids.
            padding_mask: `(batch, src_len)` bool, True at padding.
        """
        sentences = _sentences(src, padding_mask)
        return DecoderState.start(
            self.translation_model.source_keys_values(sentences), sentences.padding_mask
        )

    @torch.inference_mode()
    def step(self, state: DecoderState, tokens: Tensor) -> tuple[Tensor, DecoderState]:
        """Return the log-probabilities `(rows, vocab_size)` after `tokens (rows,)`, and the next state."""
        x = self.translation_model.embed_targets(tokens, torch.full_like(tokens, state.length))
        patterns = state.patterns(self.translation_model.target_stack, x)
        return self._log_probs(x, patterns), state.advance(patterns)

    @torch.inference_mode()
    def start_flat(self, src: Tensor, padding_mask: Tensor, *, beam: int, max_steps: int) -> FlatState:
        """Return the state before the first target token, for `beam` hypotheses of every source.

        Args:
            src: `(batch, src_len)` token ids.
            padding_mask: `(batch, src_len)` bool, True at padding.
            beam: Hypotheses of a source.
            max_steps: Largest number of calls of `step_flat`; not used, since buffers grow.
        """
        sentences = _sentences(src, padding_mask)
        cross = self.translation_model.target_stack.has_cross_attention
        sources = self.translation_model.source_keys_values(sentences)
        return FlatState.start(sources, sentences.padding_mask, beam=beam, cross=cross)

    @torch.inference_mode()
    def step_flat(
        self, state: FlatState, tokens: Tensor, ancestors: Tensor, positions: Tensor
    ) -> tuple[Tensor, FlatState]:
        """Return the log-probabilities of the next tokens, and the next state.

        Args:
            state: The state of every source.
            tokens: `(batch, beam)` int64, the token that continues each hypothesis; 0 at first.
            ancestors: `(batch, beam, beam * steps)` bool, the slots of each hypothesis, including this
                step's: the last `beam`, in the order of the beam.
            positions: `(batch, beam)` int64, the position of each token in its hypothesis, from 0.

        Returns:
            `(batch, beam, vocab_size)` float32, and the state after `tokens`.
        """
        x = self.translation_model.embed_targets(tokens.flatten(), positions.flatten())
        state = state.add_places(ancestors, positions)
        patterns = state.patterns(self.translation_model.target_stack, ancestors, x)
        log_probs = self._log_probs(x, patterns).view(*tokens.shape, -1)
        return log_probs, state.advance(patterns)

    def _log_probs(self, x: Tensor, patterns: Sequence[LayerPatterns]) -> Tensor:
        """Return `(num_tokens, vocab_size)` log-probabilities after embedded tokens `x`."""
        stack = self.translation_model.target_stack
        for layer, pattern in zip(stack.layers, patterns, strict=True):
            x = layer(x, pattern.attention, pattern.cross_attention)
        logits = self.translation_model.output_logits(stack.finish(x)).float()
        # in place, since the logits are the largest tensor
        return torch.log_softmax(logits, -1, out=logits)


def _sentences(src: Tensor, padding_mask: Tensor) -> Sentences:
    return Sentences.from_padded(src.masked_fill(padding_mask, PAD))
