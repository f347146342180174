"""One step of beam search, for any kind of cache.

Legend: b sentences still searched, w hypotheses of each: 1 before the first step, then `config.beam`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_eval.search.config import SearchConfig
from mnmt_eval.search.hypotheses import Hypothesis, NBest, Targets
from mnmt_eval.search.next_tokens import best_tokens, constrain
from mnmt_eval.search.protocol import EOS


@dataclass(frozen=True, kw_only=True, eq=False)
class Beam:
    """The hypotheses of every sentence that is still searched."""

    sentences: Tensor
    """`(b,)` the sentences' numbers in the batch."""
    prefix: Tensor
    """`(b, n)` the start token and the forced prefix of their targets."""
    limits: Tensor
    """`(b,)` maximal lengths."""
    live: Targets
    """`(b, w)` hypotheses that have not ended, best first."""
    parents: Tensor
    """`(b, w)` the hypothesis of the step before that each continues."""
    finished: NBest
    """The best hypotheses that have ended."""
    num_finished: Tensor
    """`(b,)` the number of hypotheses that have ended so far, good or bad."""

    @classmethod
    def initial(cls, src: Tensor, prefix: Tensor, config: SearchConfig) -> Beam:
        """Return one hypothesis without tokens for each source."""
        sentences = torch.arange(len(src), device=src.device)
        return cls(
            sentences=sentences,
            prefix=prefix,
            limits=config.max_length.limits(src),
            live=Targets.empty(src, 1, log_prob=0.0),
            parents=torch.zeros_like(sentences)[:, None],
            finished=NBest.empty(src, config.n_best),
            num_finished=torch.zeros_like(sentences),
        )

    @property
    def width(self) -> int:
        """The number of hypotheses of each sentence, w."""
        return self.parents.size(1)

    @property
    def tokens(self) -> Tensor:
        """`(b, w, n + length)` all tokens so far, prefix included."""
        return torch.cat([self.prefix[:, None].expand(-1, self.width, -1), self.live.tokens], dim=2)

    @property
    def last(self) -> Tensor:
        """`(b, w)` the last token of each hypothesis, which the model reads next."""
        return self.live.tokens[..., -1] if self.live.length else self.prefix[:, -1:]

    def select(self, places: Tensor) -> Beam:
        """Return the sentences at `places (n,)`."""
        return Beam(
            sentences=self.sentences[places],
            prefix=self.prefix[places],
            limits=self.limits[places],
            live=self.live.select(places),
            parents=self.parents[places],
            finished=self.finished.select(places),
            num_finished=self.num_finished[places],
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Continuations:
    """c continuations of the hypotheses of each of b sentences, best first; all fields are `(b, c)`."""

    parents: Tensor
    """The hypothesis that each continues."""
    tokens: Tensor
    """The token that it is continued by."""
    token_log_probs: Tensor
    """The token's log-probability, float64."""
    log_probs: Tensor
    """The log-probability of all tokens, float64; -∞ where there is none."""

    def best(self, allowed: Tensor, count: int) -> Continuations:
        """Return the `count` best continuations of those that `allowed (b, c)` marks."""
        log_probs = self.log_probs.masked_fill(~allowed, -torch.inf)
        # A stable sort breaks ties by place, so that they do not depend on batch-mates.
        log_probs, places = log_probs.sort(dim=1, descending=True, stable=True)
        places = places[:, :count]
        return Continuations(
            parents=self.parents.gather(1, places),
            tokens=self.tokens.gather(1, places),
            token_log_probs=self.token_log_probs.gather(1, places),
            log_probs=log_probs[:, :count],
        )

    def pad(self, count: int) -> Continuations:
        """Return `count` continuations; a small vocabulary has fewer of them than a wide beam."""
        missing = (0, max(0, count - self.tokens.size(1)))
        return Continuations(
            parents=F.pad(self.parents, missing),
            tokens=F.pad(self.tokens, missing),
            token_log_probs=F.pad(self.token_log_probs, missing),
            log_probs=F.pad(self.log_probs, missing, value=-torch.inf),
        )

    def append_to(self, live: Targets) -> Targets:
        """Return the continued hypotheses `(b, c)` with all their tokens."""
        return live.gather(self.parents).append(self.tokens, self.token_log_probs, self.log_probs)


def advance(beam: Beam, log_probs: Tensor, config: SearchConfig) -> Beam:
    """Return the beam with one more token.

    The `config.beam` best continuations that do not end live on. Those that end, with `</s>` or at the
    maximal length, enter the n-best if they score well enough, but only from among the `config.beam` best of
    all continuations: a hypothesis that a beam would not keep must not win by its length.

    Args:
        beam: The hypotheses.
        log_probs: `(b, w, vocab_size)` log-probabilities of the tokens that follow each.
        config: The search options.

    Raises:
        EvalError: If the log-probabilities are not finite.
    """
    length = beam.live.length + 1
    rows, tokens = log_probs.flatten(0, 1), beam.tokens.flatten(0, 1)
    allowed = constrain(rows, tokens, length=length - 1, config=config).view_as(log_probs)
    continuations = _best_continuations(beam.live, allowed, config.beam)
    at_end = (continuations.tokens == EOS) | (beam.limits[:, None] == length)
    ended = at_end & (continuations.log_probs > -torch.inf)
    ended[:, config.beam :] = False
    live = continuations.best(~at_end, config.beam)
    finished = continuations.best(ended, config.n_best).append_to(beam.live)
    divisor = config.length_penalty.divisors(beam.limits.new_tensor(length))
    return replace(
        beam,
        live=live.append_to(beam.live),
        parents=live.parents,
        finished=beam.finished.update(finished, divisor),
        num_finished=beam.num_finished + ended.sum(dim=1),
    )


def take_finished(beam: Beam, config: SearchConfig) -> tuple[dict[int, list[Hypothesis]], Tensor]:
    """Return the n-best of the sentences that are done, and the places `(n,)` of the others."""
    improving = _can_improve(beam, config)
    done = beam.select((~improving).nonzero().squeeze(1))
    results = dict(zip(done.sentences.tolist(), done.finished.hypotheses(), strict=True))
    return results, improving.nonzero().squeeze(1)


def _can_improve(beam: Beam, config: SearchConfig) -> Tensor:
    """Return which sentences `(b,)` must be searched further.

    A log-probability can only fall from token to token, so that no continuation of a hypothesis can score
    above its present log-probability over the largest penalty it can get, that of the maximal length. Where
    even the likeliest live hypothesis cannot so exceed the last of the n-best, further steps change nothing.
    """
    attainable = beam.live.log_probs[:, 0] / config.length_penalty.divisors(beam.limits)
    improving = attainable > beam.finished.scores[:, -1]
    return improving & (beam.num_finished < config.beam) if config.early_stopping == "filled" else improving


def _best_continuations(live: Targets, log_probs: Tensor, beam: int) -> Continuations:
    """Return the `2 * beam` best continuations of each sentence, best first.

    At most one continuation of a hypothesis ends with `</s>`, so that `beam` of these can live on, and
    `beam + 1` of each hypothesis are enough. There are `beam` at least, the last of them empty if need be.

    Args:
        live: `(b, w)` hypotheses.
        log_probs: `(b, w, vocab_size)` log-probabilities of the tokens that follow each.
        beam: The number of hypotheses to keep.

    Raises:
        EvalError: If the log-probabilities are not finite.
    """
    b, w = live.log_probs.shape
    values, tokens = (best.view(b, w, -1) for best in best_tokens(log_probs.flatten(0, 1), beam + 1))
    parents = torch.arange(w, device=tokens.device)[:, None].expand_as(tokens)
    continuations = Continuations(
        parents=parents.flatten(1),
        tokens=tokens.flatten(1),
        token_log_probs=values.flatten(1),
        log_probs=(live.log_probs[..., None] + values).flatten(1),
    )
    return continuations.best(torch.ones_like(continuations.tokens, dtype=torch.bool), 2 * beam).pad(beam)
