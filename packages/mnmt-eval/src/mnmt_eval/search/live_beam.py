"""A step of beam search, whatever the model keeps of the hypotheses.

Legend: b sentences still searched, w hypotheses of each: 1 before the first step, then `config.beam`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from mnmt_eval.protocol import EOS
from mnmt_eval.search.candidates import best_candidates
from mnmt_eval.search.config import SearchConfig
from mnmt_eval.search.constraints import constrain
from mnmt_eval.search.hypothesis import Hypothesis
from mnmt_eval.search.n_best import NBest, no_n_best
from mnmt_eval.search.targets import Targets, empty_targets


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
