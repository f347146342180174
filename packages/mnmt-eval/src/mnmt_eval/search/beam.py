"""Beam search over a whole batch at once.

Legend: b sentences still searched, w live hypotheses of each, c candidates of each, `length` tokens so far.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from mnmt_eval.errors import EvalError
from mnmt_eval.protocol import EOS, PAD, State, TranslationModel
from mnmt_eval.search.config import SearchConfig
from mnmt_eval.search.hypothesis import Hypothesis
from mnmt_eval.search.log_probs import best_tokens
from mnmt_eval.search.n_best import NBest


@dataclass(frozen=True, kw_only=True)
class _Beam:
    """Hypotheses of every sentence still searched, best first."""

    sentences: Tensor
    """`(b,)` which sentences of the batch."""

    limits: Tensor
    """`(b,)` maximal lengths."""

    open_slots: Tensor
    """`(b,)` how many of the sentence's hypotheses have not ended yet."""

    tokens: Tensor
    """`(b, w, length)`."""

    scores: Tensor
    """`(b, w)` log-probabilities; -∞ where there is no hypothesis."""

    rows: Tensor
    """`(b, w)` the model's row that each continues."""


@torch.inference_mode()
def beam_search(
    model: TranslationModel[State], src: Tensor, config: SearchConfig, *, n_best: int = 1
) -> list[list[Hypothesis]]:
    """Find the best translations that a beam of `config.beam` hypotheses leads to.

    At each step the best continuations of a sentence fill its open slots. One that ends takes its slot along,
    so that the beam narrows; with one slot this is greedy search. A sentence leaves the batch when all of its
    slots are taken, or when no live hypothesis can enter the n-best any more: log-probabilities only fall, so
    that none can exceed its present one divided by the length penalty of the maximal length. What is found
    for a sentence does not depend on the others, up to the rounding of the model.

    Args:
        model: what gives the log-probabilities.
        src: `(batch, src_len)` int64 token ids, padded with 0.
        config: beam, length penalty and maximal length.
        n_best: hypotheses to return for each source, at most `config.beam`.

    Returns:
        The `n_best` hypotheses of each source, best normalised score first.

    Raises:
        EvalError: if `n_best` is out of its range, or the model's log-probabilities are not finite.
    """
    if not 1 <= n_best <= config.beam:
        raise EvalError(f"`n_best` must be from 1 to `beam` ({config.beam}), but is {n_best}.")
    if not len(src):
        return []
    beam = _start(src, config)
    found = NBest(batch=len(src), count=n_best, max_length=int(beam.limits.max()), device=src.device)
    state = model.encode(src, src == PAD)
    while len(beam.sentences):
        log_probs, state = model.step(state, _last_tokens(beam))
        beam = _close(_expand(beam, log_probs, config.beam), found, config)
        state = state.select(beam.rows.flatten())
    return found.hypotheses()


def _start(src: Tensor, config: SearchConfig) -> _Beam:
    """One empty hypothesis a sentence."""
    batch = len(src)
    sentences = torch.arange(batch, device=src.device)
    return _Beam(
        sentences=sentences,
        limits=config.max_length.of(src),
        open_slots=torch.full_like(sentences, config.beam),
        tokens=src.new_empty((batch, 1, 0)),
        scores=torch.zeros((batch, 1), dtype=torch.float64, device=src.device),
        rows=sentences[:, None],
    )


def _last_tokens(beam: _Beam) -> Tensor:
    """`(b · w,)` the token that each hypothesis is continued by."""
    if beam.tokens.size(2) == 0:
        return beam.tokens.new_full((beam.scores.numel(),), PAD)
    return beam.tokens[..., -1].flatten()


def _expand(beam: _Beam, log_probs: Tensor, width: int) -> _Beam:
    """The best continuations of each sentence, at most `width` and as many as it has open slots."""
    b, w = beam.scores.shape
    values, tokens = best_tokens(log_probs, width)
    per_hypothesis = values.size(1)
    scores = (beam.scores[..., None] + values.view(b, w, per_hypothesis)).flatten(1)
    # A stable sort breaks ties by place, so that they do not depend on how many slots the batch-mates have.
    scores, order = scores.sort(dim=1, descending=True, stable=True)
    scores, order = scores[:, :width], order[:, :width]
    parents = order // per_hypothesis
    rows = torch.arange(b, device=order.device)[:, None] * w + parents
    histories = beam.tokens.take_along_dim(parents[..., None], dim=1)
    last = tokens.view(b, -1).gather(1, order)
    surplus = torch.arange(scores.size(1), device=order.device) >= beam.open_slots[:, None]
    return _Beam(
        sentences=beam.sentences,
        limits=beam.limits,
        open_slots=beam.open_slots,
        tokens=torch.cat([histories, last[..., None]], dim=2),
        scores=scores.masked_fill(surplus, -torch.inf),
        rows=rows,
    )


def _close(beam: _Beam, found: NBest, config: SearchConfig) -> _Beam:
    """Move ended hypotheses to `found`; drop empty slots, and sentences that cannot find better any more."""
    length = beam.tokens.size(2)
    at_end = (beam.tokens[..., -1] == EOS) | (beam.limits[:, None] == length)
    ended = beam.scores.masked_fill(~at_end, -torch.inf)
    penalty = config.length_penalty.of(beam.limits.new_tensor(length))
    found.offer(beam.sentences, beam.tokens, ended, ended / penalty)

    live, order = beam.scores.masked_fill(at_end, -torch.inf).sort(dim=1, descending=True, stable=True)
    attainable = live[:, 0] / config.length_penalty.of(beam.limits)
    kept = (attainable > found.to_beat(beam.sentences)).nonzero().squeeze(1)
    width = int((live[kept] > -torch.inf).sum(dim=1).max()) if len(kept) else 0
    order = order[kept, :width]
    return _Beam(
        sentences=beam.sentences[kept],
        limits=beam.limits[kept],
        open_slots=(beam.open_slots - (ended > -torch.inf).sum(dim=1))[kept],
        tokens=beam.tokens[kept].take_along_dim(order[..., None], dim=1),
        scores=live[kept, :width],
        rows=beam.rows[kept].gather(1, order),
    )
