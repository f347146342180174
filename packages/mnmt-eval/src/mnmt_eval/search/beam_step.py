"""Continuations of the hypotheses of a beam."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_eval.search.config import SearchConfig
from mnmt_eval.search.hypotheses import Hypothesis, NBest, Targets, empty_targets, no_n_best
from mnmt_eval.search.next_tokens import best_tokens, constrain
from mnmt_eval.search.protocol import EOS


@dataclass(frozen=True, kw_only=True, eq=False)
class Candidates:
    """Hypotheses with one token more, c of each of b sentences, best first; all fields are `(b, c)`."""

    parents: Tensor
    """Which hypothesis each continues."""

    tokens: Tensor
    """The token it is continued by."""

    token_log_probs: Tensor
    """That token's log-probability, float64."""

    log_probs: Tensor
    """Of the whole, float64; -∞ where there is no candidate."""

    def only(self, chosen: Tensor, count: int) -> Candidates:
        """The `count` best of those that are `chosen (b, c)`."""
        log_probs = self.log_probs.masked_fill(~chosen, -torch.inf)
        # A stable sort breaks ties by place, so that they do not depend on batch-mates.
        log_probs, places = log_probs.sort(dim=1, descending=True, stable=True)
        places = places[:, :count]
        return Candidates(
            parents=self.parents.gather(1, places),
            tokens=self.tokens.gather(1, places),
            token_log_probs=self.token_log_probs.gather(1, places),
            log_probs=log_probs[:, :count],
        )

    def grown_from(self, live: Targets) -> Targets:
        """Hypotheses `(b, c)` with all their tokens."""
        return live.take(self.parents).continued(self.tokens, self.token_log_probs, self.log_probs)


def best_candidates(live: Targets, log_probs: Tensor, beam: int) -> Candidates:
    """The `2 * beam` best continuations of each sentence, best first, or as many as there are.

    At most one continuation of a hypothesis ends with `</s>`, so that `beam` of these can live on, and
    `beam + 1` of each hypothesis are enough.

    Args:
        live: `(b, w)` hypotheses.
        log_probs: `(b, w, vocab_size)` of what follows each.
        beam: Hypotheses to keep.

    Raises:
        EvalError: If the log-probabilities are not finite.
    """
    b, w = live.log_probs.shape
    values, tokens = (found.view(b, w, -1) for found in best_tokens(log_probs.flatten(0, 1), beam + 1))
    parents = torch.arange(w, device=tokens.device)[:, None].expand_as(tokens)
    everything = Candidates(
        parents=parents.flatten(1),
        tokens=tokens.flatten(1),
        token_log_probs=values.flatten(1),
        log_probs=(live.log_probs[..., None] + values).flatten(1),
    )
    found = everything.only(torch.ones_like(everything.tokens, dtype=torch.bool), 2 * beam)
    return _padded(found, beam)


def _padded(found: Candidates, count: int) -> Candidates:
    """With empty places up to `count`: a small vocabulary has fewer candidates than a wide beam."""
    missing = (0, max(0, count - found.tokens.size(1)))
    return replace(
        found,
        parents=F.pad(found.parents, missing),
        tokens=F.pad(found.tokens, missing),
        token_log_probs=F.pad(found.token_log_probs, missing),
        log_probs=F.pad(found.log_probs, missing, value=-torch.inf),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Beam:
    """Every sentence still searched."""

    sentences: Tensor
    """`(b,)` which of the batch."""

    begun: Tensor
    """`(b, n)` what their targets begin with."""

    limits: Tensor
    """`(b,)` maximal lengths."""

    live: Targets
    """`(b, w)` hypotheses that go on, best first."""

    parents: Tensor
    """`(b, w)` which hypothesis of the step before each continues."""

    ended: NBest
    """The best that have ended."""

    num_ended: Tensor
    """`(b,)` how many have ended so far, good or bad."""

    @property
    def width(self) -> int:
        """Hypotheses of each sentence, w."""
        return self.parents.size(1)

    @property
    def targets(self) -> Tensor:
        """`(b, w, n + length)` all tokens so far."""
        return torch.cat([self.begun[:, None].expand(-1, self.width, -1), self.live.tokens], dim=2)

    @property
    def last(self) -> Tensor:
        """`(b, w)` the token that each hypothesis is continued by."""
        return self.live.tokens[..., -1] if self.live.length else self.begun[:, -1:]

    def of(self, places: Tensor) -> Beam:
        """The sentences at `places (n,)`."""
        return Beam(
            sentences=self.sentences[places],
            begun=self.begun[places],
            limits=self.limits[places],
            live=self.live.of(places),
            parents=self.parents[places],
            ended=self.ended.of(places),
            num_ended=self.num_ended[places],
        )


def first_beam(src: Tensor, begun: Tensor, config: SearchConfig) -> Beam:
    """One hypothesis without tokens for each source."""
    sentences = torch.arange(len(src), device=src.device)
    return Beam(
        sentences=sentences,
        begun=begun,
        limits=config.max_length.of(src),
        live=empty_targets(src, 1, log_prob=0.0),
        parents=torch.zeros_like(sentences)[:, None],
        ended=no_n_best(src, config.n_best),
        num_ended=torch.zeros_like(sentences),
    )


def grow(beam: Beam, log_probs: Tensor, config: SearchConfig) -> Beam:
    """One token more.

    The `config.beam` best candidates that do not end live on. Those that end, with `</s>` or at the maximal
    length, enter the n-best if they are good enough for it, but only from among the `config.beam` best of all
    candidates: what a beam would not keep must not win by its length.

    Args:
        beam: The hypotheses.
        log_probs: `(b, w, vocab_size)` of what follows each.
        config: How to search.

    Raises:
        EvalError: If the log-probabilities are not finite.
    """
    length = beam.live.length + 1
    rows, targets = log_probs.flatten(0, 1), beam.targets.flatten(0, 1)
    allowed = constrain(rows, targets, length=length - 1, config=config).view_as(log_probs)
    found = best_candidates(beam.live, allowed, config.beam)
    at_end = (found.tokens == EOS) | (beam.limits[:, None] == length)
    ended = at_end & (found.log_probs > -torch.inf)
    ended[:, config.beam :] = False
    living = found.only(~at_end, config.beam)
    best = found.only(ended, config.n_best).grown_from(beam.live)
    return replace(
        beam,
        live=living.grown_from(beam.live),
        parents=living.parents,
        ended=beam.ended.with_(best, config.length_penalty.of(beam.limits.new_tensor(length))),
        num_ended=beam.num_ended + ended.sum(dim=1),
    )


def settle(beam: Beam, config: SearchConfig) -> tuple[dict[int, list[Hypothesis]], Tensor]:
    """What was found for the sentences that are done, and the places `(n,)` of the others."""
    improving = _can_improve(beam, config)
    over = beam.of((~improving).nonzero().squeeze(1))
    found = dict(zip(over.sentences.tolist(), over.ended.hypotheses(), strict=True))
    return found, improving.nonzero().squeeze(1)


def _can_improve(beam: Beam, config: SearchConfig) -> Tensor:
    """Which sentences `(b,)` must be searched on.

    A log-probability can only fall from token to token, so that no continuation of a hypothesis can score
    above its present log-probability over the largest penalty it can get, that of the maximal length. Where
    not even the likeliest live hypothesis can so exceed the last of the n-best, going on changes nothing.
    """
    attainable = beam.live.log_probs[:, 0] / config.length_penalty.of(beam.limits)
    improving = attainable > beam.ended.scores[:, -1]
    return improving & (beam.num_ended < config.beam) if config.early_stopping == "filled" else improving
