"""One step of beam search, for any kind of cache.

Scores of tokens are tensors where the model computes them; the few continuations that are kept are arrays.

Legend: b sentences still searched, w hypotheses of each: 1 before the first step, then `config.beam`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from mnmt_eval.search.config import SearchConfig
from mnmt_eval.search.hypotheses import Hypothesis, NBest, Targets
from mnmt_eval.search.next_tokens import best_tokens
from mnmt_eval.search.protocol import EOS, PAD

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Beam:
    """The hypotheses of every sentence that is still searched."""

    sentences: Ints
    """`(b,)` the sentences' numbers in the batch."""
    limits: Ints
    """`(b,)` maximal lengths."""
    live: Targets
    """`(b, w)` hypotheses that have not ended, best first."""
    parents: Ints
    """`(b, w)` the hypothesis of the step before that each continues."""
    finished: NBest
    """The best hypotheses that have ended."""
    num_finished: Ints
    """`(b,)` the number of hypotheses that have ended so far, good or bad."""

    @classmethod
    def initial(cls, src: Tensor, config: SearchConfig) -> Beam:
        """Return one hypothesis without tokens for each source."""
        batch = len(src)
        return cls(
            sentences=np.arange(batch),
            limits=config.max_length.limits(src),
            live=Targets.empty(batch, 1, log_prob=0.0),
            parents=np.zeros((batch, 1), dtype=np.int64),
            finished=NBest.empty(batch, config.n_best),
            num_finished=np.zeros(batch, dtype=np.int64),
        )

    @property
    def width(self) -> int:
        """The number of hypotheses of each sentence, w."""
        return int(self.parents.shape[1])

    @property
    def last(self) -> Ints:
        """`(b, w)` the last token of each hypothesis, which the model reads next."""
        return self.live.tokens[..., -1] if self.live.length else np.full_like(self.parents, PAD)

    def select(self, places: Ints) -> Beam:
        """Return the sentences at `places (n,)`."""
        return Beam(
            sentences=self.sentences[places],
            limits=self.limits[places],
            live=self.live.select(places),
            parents=self.parents[places],
            finished=self.finished.select(places),
            num_finished=self.num_finished[places],
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Continuations:
    """c continuations of the hypotheses of each of b sentences, best first; all fields are `(b, c)`."""

    parents: Ints
    """The hypothesis that each continues."""
    tokens: Ints
    """The token that it is continued by."""
    token_log_probs: Floats
    """The token's log-probability."""
    log_probs: Floats
    """The log-probability of all tokens; -∞ where there is none."""

    def take(self, allowed: NDArray[np.bool_], count: int) -> Continuations:
        """Return the `count` best continuations that `allowed (b, c)` marks."""
        # Continuations are sorted, so a stable sort by "not allowed" puts the best of `allowed` first.
        places = (~allowed).argsort(axis=1, kind="stable")[:, :count]
        sentences = np.arange(len(places))[:, None]
        return Continuations(
            parents=self.parents[sentences, places],
            tokens=self.tokens[sentences, places],
            token_log_probs=self.token_log_probs[sentences, places],
            log_probs=np.where(allowed, self.log_probs, -np.inf)[sentences, places],
        )

    def append_to(self, live: Targets) -> Targets:
        """Return the continued hypotheses `(b, c)` with all their tokens."""
        return live.gather(self.parents).append(self.tokens, self.token_log_probs, self.log_probs)


def advance(beam: Beam, log_probs: Tensor, config: SearchConfig) -> Beam:
    """Return the beam with one more token.

    The `config.beam` best continuations that do not end stay alive. A continuation ends with `</s>` or at the
    maximal length. It enters the n-best if it scores well enough and is one of the `config.beam` best of all
    continuations: a hypothesis that a beam would drop must not win by its length.

    Args:
        beam: The hypotheses.
        log_probs: `(b * w, vocab_size)` log-probabilities of the tokens that follow each.
        config: The search options.

    Raises:
        EvalError: If the log-probabilities are not finite.
    """
    length = beam.live.length + 1
    continuations = _best_continuations(beam.live, log_probs, config.beam)
    at_end = (continuations.tokens == EOS) | (beam.limits[:, None] == length)
    ended = at_end & (continuations.log_probs > -np.inf)
    ended[:, config.beam :] = False
    live = continuations.take(~at_end, config.beam)
    finished = beam.finished
    if ended.any():
        newly = continuations.take(ended, config.n_best).append_to(beam.live)
        finished = finished.update(newly, config.length_penalty.divisors(np.array(length)))
    return replace(
        beam,
        live=live.append_to(beam.live),
        parents=live.parents,
        finished=finished,
        num_finished=beam.num_finished + ended.sum(axis=1),
    )


def take_finished(beam: Beam, config: SearchConfig) -> tuple[dict[int, list[Hypothesis]], Ints]:
    """Return the n-best of the sentences that are done, and the places `(n,)` of the others."""
    improving = _can_improve(beam, config)
    if improving.all():
        return {}, np.arange(len(improving))
    done = beam.select(np.flatnonzero(~improving))
    results = dict(zip(done.sentences.tolist(), done.finished.hypotheses(), strict=True))
    return results, np.flatnonzero(improving)


def _can_improve(beam: Beam, config: SearchConfig) -> NDArray[np.bool_]:
    """Return which sentences `(b,)` must be searched further.

    A log-probability can only fall from token to token. So no continuation scores above its hypothesis'
    log-probability over the largest divisor, that of the maximal length. Where even the likeliest live
    hypothesis cannot exceed the last of the n-best in this way, further steps change nothing.
    """
    attainable = beam.live.log_probs[:, 0] / config.length_penalty.divisors(beam.limits)
    improving: NDArray[np.bool_] = attainable > beam.finished.scores[:, -1]
    return improving & (beam.num_finished < config.beam) if config.early_stopping == "filled" else improving


def _best_continuations(live: Targets, log_probs: Tensor, beam: int) -> Continuations:
    """Return the `2 * beam` best continuations of each sentence, best first.

    At most one continuation of a hypothesis ends with `</s>`, so that `beam` of these can live on, and
    `beam + 1` of each hypothesis are enough. There are `beam` at least, the last of them empty if need be.

    Args:
        live: `(b, w)` hypotheses.
        log_probs: `(b * w, vocab_size)` log-probabilities of the tokens that follow each.
        beam: The number of hypotheses to keep.

    Raises:
        EvalError: If the log-probabilities are not finite.
    """
    b, w = live.log_probs.shape
    values, tokens = best_tokens(log_probs, beam + 1)
    count = values.shape[1]
    totals = (live.log_probs[..., None] + values.reshape(b, w, count)).reshape(b, -1)
    # A stable sort breaks ties by place, so that they do not depend on batch-mates.
    places = (-totals).argsort(axis=1, kind="stable")[:, : 2 * beam]
    sentences = np.arange(b)[:, None]
    best = Continuations(
        parents=places // count,
        tokens=tokens.reshape(b, -1)[sentences, places],
        token_log_probs=values.reshape(b, -1)[sentences, places],
        log_probs=totals[sentences, places],
    )
    return best if places.shape[1] >= beam else _fill_up(best, beam)


def _fill_up(continuations: Continuations, count: int) -> Continuations:
    """Pad continuations to `count` with empty ones, where the vocabulary is small for the beam."""
    missing = ((0, 0), (0, count - continuations.tokens.shape[1]))
    return Continuations(
        parents=np.pad(continuations.parents, missing),
        tokens=np.pad(continuations.tokens, missing),
        token_log_probs=np.pad(continuations.token_log_probs, missing),
        log_probs=np.pad(continuations.log_probs, missing, constant_values=-np.inf),
    )
