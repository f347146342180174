"""Hypotheses: single ones, those of a batch as tensors, and the n-best of every sentence."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_eval.search.config import LengthPenalty
from mnmt_eval.search.protocol import EOS, PAD


@dataclass(frozen=True, kw_only=True)
class Hypothesis:
    """One translation as token ids, without the prefix if one was forced."""

    tokens: tuple[int, ...]
    """Target tokens with the final `</s>`; without one, the maximal length cut the hypothesis off."""
    token_log_probs: tuple[float, ...]
    """The log-probability of each token given source, prefix and earlier tokens, in nats."""
    log_prob: float
    """The sum of `token_log_probs`."""
    score: float
    """`log_prob` divided by the length penalty; hypotheses are ranked by it."""

    @property
    def is_complete(self) -> bool:
        """Whether the hypothesis ends with `</s>`."""
        return self.tokens[-1] == EOS


@dataclass(frozen=True, kw_only=True, eq=False)
class Targets:
    """k hypotheses of each of b sentences as tensors; some may be empty places."""

    tokens: Tensor
    """`(b, k, length)`; padded where a hypothesis is shorter."""
    token_log_probs: Tensor
    """`(b, k, length)` float64; 0 at padding."""
    log_probs: Tensor
    """`(b, k)` float64, the sums of `token_log_probs`; -∞ at empty places."""

    @classmethod
    def empty(cls, like: Tensor, count: int, *, log_prob: float) -> Targets:
        """Return `count` targets without tokens, of one log-probability, for each row of `like (b, …)`."""
        shape, device = (len(like), count), like.device
        return cls(
            tokens=torch.empty((*shape, 0), dtype=torch.int64, device=device),
            token_log_probs=torch.empty((*shape, 0), dtype=torch.float64, device=device),
            log_probs=torch.full(shape, log_prob, dtype=torch.float64, device=device),
        )

    @property
    def length(self) -> int:
        """The number of tokens of the longest hypothesis."""
        return self.tokens.size(2)

    def select(self, sentences: Tensor) -> Targets:
        """Return the hypotheses of the given sentences `(n,)`."""
        return Targets(
            tokens=self.tokens[sentences],
            token_log_probs=self.token_log_probs[sentences],
            log_probs=self.log_probs[sentences],
        )

    def gather(self, places: Tensor) -> Targets:
        """Return the hypotheses at `places (b, n)` of each sentence."""
        sentences = torch.arange(len(places), device=places.device)[:, None]
        return Targets(
            tokens=self.tokens[sentences, places],
            token_log_probs=self.token_log_probs[sentences, places],
            log_probs=self.log_probs[sentences, places],
        )

    def append(self, tokens: Tensor, token_log_probs: Tensor, log_probs: Tensor) -> Targets:
        """Return each hypothesis with one more token; arguments are `(b, k)`, `log_probs` the new sums."""
        return Targets(
            tokens=torch.cat([self.tokens, tokens[..., None]], dim=2),
            token_log_probs=torch.cat([self.token_log_probs, token_log_probs[..., None]], dim=2),
            log_probs=log_probs,
        )

    def pad(self, length: int) -> Targets:
        """Return the hypotheses with their tokens padded to `length`."""
        missing = (0, length - self.length)
        return Targets(
            tokens=F.pad(self.tokens, missing, value=PAD),
            token_log_probs=F.pad(self.token_log_probs, missing),
            log_probs=self.log_probs,
        )

    def concatenate(self, other: Targets) -> Targets:
        """Return the hypotheses of both, sentence by sentence."""
        length = max(self.length, other.length)
        first, second = self.pad(length), other.pad(length)
        return Targets(
            tokens=torch.cat([first.tokens, second.tokens], dim=1),
            token_log_probs=torch.cat([first.token_log_probs, second.token_log_probs], dim=1),
            log_probs=torch.cat([first.log_probs, second.log_probs], dim=1),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class NBest:
    """The n best finished hypotheses of each of b sentences, best first; some places may be empty."""

    targets: Targets
    """`(b, n)` hypotheses."""
    scores: Tensor
    """`(b, n)` float64; -∞ at empty places."""

    @classmethod
    def empty(cls, like: Tensor, count: int) -> NBest:
        """Return `count` empty places for each sentence of `like (b, …)`."""
        targets = Targets.empty(like, count, log_prob=-torch.inf)
        return cls(targets=targets, scores=targets.log_probs)

    @classmethod
    def rank(cls, targets: Targets, penalty: LengthPenalty) -> NBest:
        """Return finished hypotheses `(b, k)`, best first."""
        lengths = (targets.tokens != PAD).sum(dim=2)
        scores = targets.log_probs / penalty.divisors(lengths)
        best, places = scores.sort(dim=1, descending=True, stable=True)
        return cls(targets=targets.gather(places), scores=best)

    def select(self, sentences: Tensor) -> NBest:
        """Return the n-best of the given sentences `(n,)`."""
        return NBest(targets=self.targets.select(sentences), scores=self.scores[sentences])

    def update(self, finished: Targets, divisor: Tensor) -> NBest:
        """Return the n best of these and of newly `finished (b, k)` hypotheses.

        Of hypotheses with equal scores, those that ended first come first.

        Args:
            finished: Hypotheses of one length.
            divisor: The length penalty's divisor for that length.
        """
        scores = torch.cat([self.scores, finished.log_probs / divisor], dim=1)
        best, places = scores.sort(dim=1, descending=True, stable=True)
        count = self.scores.size(1)
        targets = self.targets.concatenate(finished).gather(places[:, :count])
        return NBest(targets=targets, scores=best[:, :count])

    def hypotheses(self) -> list[list[Hypothesis]]:
        """Return the hypotheses of each sentence, best first."""
        targets = self.targets
        columns = (targets.tokens, targets.token_log_probs, targets.log_probs, self.scores)
        sentences = zip(*(column.tolist() for column in columns), strict=True)
        return [
            [_hypothesis(*place) for place in zip(*sentence, strict=True) if place[-1] > -torch.inf]
            for sentence in sentences
        ]


def _hypothesis(tokens: list[int], token_log_probs: list[float], log_prob: float, score: float) -> Hypothesis:
    length = tokens.index(PAD) if PAD in tokens else len(tokens)
    return Hypothesis(
        tokens=tuple(tokens[:length]),
        token_log_probs=tuple(token_log_probs[:length]),
        log_prob=log_prob,
        score=score,
    )
