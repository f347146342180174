"""Beam search over a whole batch at once, with caches that are reordered or in a flat buffer."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from mnmt_eval.search.beam_step import Beam, advance, take_finished
from mnmt_eval.search.config import SearchConfig
from mnmt_eval.search.hypotheses import Hypothesis
from mnmt_eval.search.next_tokens import on_device
from mnmt_eval.search.protocol import PAD, Flat, FlatSearchModel, SearchModel, State


@torch.inference_mode()
def beam_search(model: SearchModel[State], src: Tensor, config: SearchConfig) -> list[list[Hypothesis]]:
    """Search with a beam of `config.beam` hypotheses, and reorder the cache after every step.

    A sentence leaves the batch when it is done. Its result does not depend on the other sentences, up to the
    rounding of the model.

    Args:
        model: The model that gives the log-probabilities.
        src: `(batch, src_len)` int64 token ids, padded with 0.
        config: The search options.

    Returns:
        At most `config.n_best` hypotheses of each source, best score first.

    Raises:
        EvalError: If the model's log-probabilities are not finite.
    """
    if not len(src):
        return []
    results: dict[int, list[Hypothesis]] = {}
    beam, state = Beam.initial(src, config), model.encode(src, src == PAD)
    while len(beam.sentences):
        log_probs, state = model.step(state, on_device(beam.last.ravel(), src))
        next_beam = advance(beam, log_probs, config)
        finished, active = take_finished(next_beam, config)
        results |= finished
        rows = (active[:, None] * beam.width + next_beam.parents[active]).ravel()
        state = state.select(on_device(rows, src))
        beam = next_beam.select(active) if finished else next_beam
    return [results[sentence] for sentence in range(len(src))]


@torch.inference_mode()
def flat_beam_search(
    model: FlatSearchModel[Flat], src: Tensor, config: SearchConfig
) -> list[list[Hypothesis]]:
    """Search as `beam_search` does, without reordering keys and values.

    This is the decoding of GShard (Lepikhin et al. 2021). Every step writes the keys and values of a
    sentence's hypotheses into new slots, and a row of a mask says which slots a hypothesis consists of. Where
    two hypotheses continue the same one, a row of the mask is copied in place of the keys and values of all
    layers.

    The price is attention over all slots, most of them masked: up to `config.beam` times the scores.

    Args:
        model: The model that gives the log-probabilities.
        src: `(batch, src_len)` int64 token ids, padded with 0.
        config: The search options.

    Returns:
        At most `config.n_best` hypotheses of each source, best score first.

    Raises:
        EvalError: If the model's log-probabilities are not finite.
    """
    if not len(src):
        return []
    results: dict[int, list[Hypothesis]] = {}
    beam, max_steps = Beam.initial(src, config), int(config.max_length.limits(src).max())
    state = model.start_flat(src, src == PAD, beam=config.beam, max_steps=max_steps)
    ancestors = Ancestors(mask=src.new_empty((len(src), config.beam, 0), dtype=torch.bool))
    while len(beam.sentences):
        ancestors = ancestors.add_step()
        last = on_device(beam.last, src).expand(-1, config.beam)
        log_probs, state = model.step_flat(state, last, ancestors.mask, ancestors.positions)
        # Before the first step, a sentence has one hypothesis, of which the model has `beam` equal copies.
        beam = advance(beam, log_probs[:, : beam.width].flatten(0, 1), config)
        finished, active = take_finished(beam, config)
        results |= finished
        places = on_device(active, src)
        state = state.keep(places) if finished else state
        beam = beam.select(active) if finished else beam
        ancestors = ancestors.branch(places, on_device(beam.parents, src))
    return [results[sentence] for sentence in range(len(src))]


@dataclass(frozen=True, kw_only=True, eq=False)
class Ancestors:
    """The slots of its sentence's buffer that each hypothesis consists of."""

    mask: Tensor
    """`(b, beam, beam * steps)` bool, after `steps` steps."""

    @property
    def positions(self) -> Tensor:
        """`(b, beam)` the position of the last token of each hypothesis, from 0."""
        b, beam, slots = self.mask.shape
        return torch.full((b, beam), slots // beam - 1, device=self.mask.device)

    def add_step(self) -> Ancestors:
        """Return each with the slot that the next step writes: slot `steps * beam + i` for hypothesis i."""
        b, beam, _ = self.mask.shape
        new_slots = torch.eye(beam, dtype=torch.bool, device=self.mask.device)
        return Ancestors(mask=torch.cat([self.mask, new_slots.expand(b, -1, -1)], dim=2))

    def branch(self, sentences: Tensor, parents: Tensor) -> Ancestors:
        """Return the slots that continuations of `parents (n, beam)` of `sentences (n,)` inherit."""
        return Ancestors(mask=self.mask[sentences[:, None], parents])
