"""Beam search over a whole batch at once, with caches that are reordered."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from mnmt_eval.search.beam_step import first_beam, grow, settle
from mnmt_eval.search.config import SearchConfig
from mnmt_eval.search.hypotheses import Hypothesis
from mnmt_eval.search.next_tokens import begin, beginnings
from mnmt_eval.search.protocol import PAD, Flat, FlatModel, State, TranslationModel


@torch.inference_mode()
def beam_search(
    model: TranslationModel[State], src: Tensor, config: SearchConfig, *, prefix: Tensor | None = None
) -> list[list[Hypothesis]]:
    """Find the best translations that a beam of `config.beam` hypotheses leads to.

    A sentence leaves the batch when it is done. What is found for it does not depend on the others, up to the
    rounding of the model.

    Args:
        model: What gives the log-probabilities.
        src: `(batch, src_len)` int64 token ids, padded with 0.
        config: How to search.
        prefix: `(batch, prefix_len)` tokens that targets are forced to begin with; they count neither in
            lengths nor in log-probabilities, and are no part of what is returned.

    Returns:
        At most `config.n_best` hypotheses of each source, best score first.

    Raises:
        EvalError: If `prefix` does not fit, or the model's log-probabilities are not finite.
    """
    begun = beginnings(src, prefix)
    if not len(src):
        return []
    found: dict[int, list[Hypothesis]] = {}
    beam = first_beam(src, begun, config)
    state = begin(model, src, begun)
    while len(beam.sentences):
        log_probs, state = model.step(state, beam.last.flatten())
        grown = grow(beam, log_probs.view(*beam.parents.shape, -1), config)
        done, kept = settle(grown, config)
        found |= done
        state = state.select((kept[:, None] * beam.width + grown.parents[kept]).flatten())
        beam = grown.of(kept)
    return [found[sentence] for sentence in range(len(src))]


@dataclass(frozen=True, kw_only=True, eq=False)
class Ancestors:
    """Which slots of its sentence's buffer each hypothesis consists of."""

    mask: Tensor
    """`(b, beam, beam * steps)` bool, after so many steps."""

    @property
    def positions(self) -> Tensor:
        """`(b, beam)` place of the last token of each, from 0."""
        b, beam, slots = self.mask.shape
        return torch.full((b, beam), slots // beam - 1, device=self.mask.device)

    def with_own_slots(self) -> Ancestors:
        """Each with the slot that the next step writes for it: slot `steps * beam + i` for hypothesis i."""
        b, beam, _ = self.mask.shape
        own = torch.eye(beam, dtype=torch.bool, device=self.mask.device)
        return Ancestors(mask=torch.cat([self.mask, own.expand(b, -1, -1)], dim=2))

    def branched(self, sentences: Tensor, parents: Tensor) -> Ancestors:
        """What continuations of the hypotheses `parents (n, beam)` of `sentences (n,)` inherit from them."""
        return Ancestors(mask=self.mask[sentences[:, None], parents])


@torch.inference_mode()
def flat_beam_search(
    model: FlatModel[Flat], src: Tensor, config: SearchConfig, *, prefix: Tensor | None = None
) -> list[list[Hypothesis]]:
    """Find what `beam_search` finds, without reordering any keys and values.

    Attention runs over all slots, of which most are masked: up to `config.beam` times as many scores, for no
    copies of the cache.

    Args:
        model: What gives the log-probabilities.
        src: `(batch, src_len)` int64 token ids, padded with 0.
        config: How to search.
        prefix: `(batch, prefix_len)` tokens that targets are forced to begin with, see `beam_search`.

    Returns:
        At most `config.n_best` hypotheses of each source, best score first.

    Raises:
        EvalError: If `prefix` does not fit, or the model's log-probabilities are not finite.
    """
    begun = beginnings(src, prefix)
    if not len(src):
        return []
    found: dict[int, list[Hypothesis]] = {}
    beam = first_beam(src, begun, config)
    state, ancestors = _begin(model, src, begun, config)
    while len(beam.sentences):
        ancestors = ancestors.with_own_slots()
        last = beam.last.expand(-1, config.beam)
        log_probs, state = model.step_flat(state, last, ancestors.mask, ancestors.positions)
        # Before the first step all hypotheses of a sentence are one.
        grown = grow(beam, log_probs[:, : beam.width], config)
        done, kept = settle(grown, config)
        found |= done
        state = state.keep(kept) if done else state
        beam = grown.of(kept)
        ancestors = ancestors.branched(kept, beam.parents)
    return [found[sentence] for sentence in range(len(src))]


def _begin(
    model: FlatModel[Flat], src: Tensor, begun: Tensor, config: SearchConfig
) -> tuple[Flat, Ancestors]:
    """The state before the last token of `begun`, and the slots of those before it."""
    max_steps = begun.size(1) - 1 + int(config.max_length.of(src).max())
    state = model.start_flat(src, src == PAD, beam=config.beam, max_steps=max_steps)
    ancestors = Ancestors(mask=src.new_empty((len(src), config.beam, 0), dtype=torch.bool))
    for tokens in begun[:, :-1].unbind(1):
        ancestors = ancestors.with_own_slots()
        tokens = tokens[:, None].expand(-1, config.beam)
        _, state = model.step_flat(state, tokens, ancestors.mask, ancestors.positions)
    return state, ancestors
