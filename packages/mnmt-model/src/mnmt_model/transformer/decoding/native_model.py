"""A model that scores one target token at a time in C++, on a CPU."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from mnmt_model.transformer import native
from mnmt_model.transformer.decoding.packed_weights import PackedWeights, versions
from mnmt_model.transformer.decoding.path_state import PathState, Sources
from mnmt_model.transformer.sentences import PAD, Sentences
from mnmt_model.transformer.translation_model import TranslationModel


class NativeModel:
    """Computes what `IncrementalModel` computes, all layers of a step in one call.

    Keys and values stay where they are written; a hypothesis is the list of its slots. So nothing is copied
    when hypotheses branch, and nothing is masked.

    Args:
        model: A model that `can_decode`.
    """

    def __init__(self, model: TranslationModel) -> None:
        self.translation_model = model.eval()
        self._weights: PackedWeights | None = None

    @staticmethod
    def can_decode(model: TranslationModel) -> bool:
        """Return whether the model is on a CPU, in float32, without experts, and C++ can be compiled here."""
        weight = model.softmax_weight
        return (
            weight.is_cpu
            and weight.dtype == model.dtype == torch.float32
            and not model.mixtures
            and native.has_library()
        )

    @torch.inference_mode()
    def encode(self, src: Tensor, padding_mask: Tensor) -> PathState:
        """Return the state before the first target token.

        Args:
            src: `(batch, src_len)` token ids.
            padding_mask: `(batch, src_len)` bool, True at padding, which comes last.

        Raises:
            ValueError: If a token follows padding, or the model was moved or cast since it was given.
        """
        if (padding_mask[:, :-1] & ~padding_mask[:, 1:]).any():
            raise ValueError(
                "`padding_mask` must hide the ends of sources only, but a token follows padding."
            )
        sentences = Sentences.from_padded(src.masked_fill(padding_mask, PAD))
        sources = Sources(
            layers=self.translation_model.source_keys_values(sentences),
            lengths=(~sentences.padding_mask).sum(1, dtype=torch.int32),
        )
        return PathState.start(sources, self._packed_weights())

    @torch.inference_mode()
    def step(self, state: PathState, tokens: Tensor) -> tuple[Tensor, PathState]:
        """Return the log-probabilities `(rows, vocab_size)` after `tokens (rows,)`, and the next state.

        Raises:
            ValueError: If there is not a token for each row of the state.
        """
        if len(tokens) != len(state.paths):
            raise ValueError(f"`tokens` must be one a row ({len(state.paths)}), but are {len(tokens)}.")
        weights = state.weights
        x = self.translation_model.embed_targets(tokens, torch.full_like(tokens, state.length))
        state, first_slot = state.add_token()
        bias = weights.position_bias(state.length)
        width = 0 if bias is None else bias.size(1)
        sizes = [*self._sizes, len(x), state.length, first_slot, state.sources.width, width]
        native.run(
            "decoding_step",
            x,
            weights.layers,
            state.addresses,
            torch.tensor(sizes),
            *weights.last_norm,
            state.paths,
            state.sentences,
            state.sources.lengths,
            bias,
            x.new_empty(len(x), self._workspace),
            self._scale,
            self.translation_model.config.norm_epsilon,
        )
        return self._log_probs(x, weights), state

    def _packed_weights(self) -> PackedWeights:
        """Return the weights as they are now: a model may be trained between two searches.

        Changes through `.data` are not noticed.
        """
        if self._weights is None or self._weights.versions != versions(self.translation_model):
            weight = self.translation_model.softmax_weight
            if not weight.is_cpu or weight.dtype not in (torch.float32, torch.float64):
                raise ValueError("the model was moved or cast; call `step_model` again.")
            self._weights = PackedWeights.of(self.translation_model)
        return self._weights

    def __getstate__(self) -> dict[str, Any]:
        """Return the model alone: addresses are no good in a copy."""
        return {"translation_model": self.translation_model, "_weights": None}

    def _log_probs(self, states: Tensor, weights: PackedWeights) -> Tensor:
        rows, inner = states.shape
        log_probs = states.new_empty(rows, self.translation_model.vocab_size)
        native.run("log_probs", states, weights.softmax, log_probs, rows, inner, log_probs.size(1))
        return log_probs.float()

    @cached_property
    def _sizes(self) -> tuple[int, ...]:
        """The first of `Sizes` in decoding.cpp, which do not change."""
        model = self.translation_model
        config, stack = model.config, model.target_stack
        return (
            len(stack.layers),
            config.d_model,
            config.num_heads,
            config.resolved_head_dim,
            config.d_ff,
            config.feed_forward == "gated-gelu",
            config.norm == "rms",
            config.norm_order == "pre",
            stack.has_cross_attention,
        )

    @cached_property
    def _workspace(self) -> int:
        """The numbers that a row's step computes on the way."""
        config = self.translation_model.config
        return config.d_model + max(4 * config.d_attention, 3 * config.d_ff)

    @cached_property
    def _scale(self) -> float:
        """The factor of attention's scores."""
        config = self.translation_model.config
        return config.resolved_head_dim**-0.5 if config.scaled_attention else 1.0
