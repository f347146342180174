"""Hypotheses, one by one and as tensors, and the n-best of every sentence."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_eval.search.config import LengthPenalty
from mnmt_eval.search.protocol import EOS, PAD


@dataclass(frozen=True, kw_only=True)
class Hypothesis:
    """One translation as token ids, after the prefix if one was forced."""

    tokens: tuple[int, ...]
    """Target tokens, the final `</s>` included; without one, the maximal length cut it off."""

    token_log_probs: tuple[float, ...]
    """Log-probability of each token given the source, the prefix and the tokens before it, in nats."""

    log_prob: float
    """Their sum."""

    score: float
    """`log_prob` divided by the length penalty; what hypotheses are ranked by."""

    @property
    def is_complete(self) -> bool:
        """Whether it ends with `</s>`."""
        return self.tokens[-1] == EOS


@dataclass(frozen=True, kw_only=True, eq=False)
class Targets:
    """As many hypotheses of each of b sentences; some places may be empty."""

    tokens: Tensor
    """`(b, k, length)`; padded where a hypothesis is shorter."""

    token_log_probs: Tensor
    """`(b, k, length)` float64; 0 at padding."""

    log_probs: Tensor
    """`(b, k)` float64, their sums; -∞ where there is no hypothesis."""

    @property
    def length(self) -> int:
        """Tokens of the longest."""
        return self.tokens.size(2)

    def of(self, sentences: Tensor) -> Targets:
        """Those of some sentences `(n,)`."""
        return Targets(
            tokens=self.tokens[sentences],
            token_log_probs=self.token_log_probs[sentences],
            log_probs=self.log_probs[sentences],
        )

    def take(self, places: Tensor) -> Targets:
        """Of each sentence, those at `places (b, n)`."""
        sentences = torch.arange(len(places), device=places.device)[:, None]
        return Targets(
            tokens=self.tokens[sentences, places],
            token_log_probs=self.token_log_probs[sentences, places],
            log_probs=self.log_probs[sentences, places],
        )

    def continued(self, tokens: Tensor, token_log_probs: Tensor, log_probs: Tensor) -> Targets:
        """Each with one more token; all arguments are `(b, k)`, and `log_probs` are the new sums."""
        return Targets(
            tokens=torch.cat([self.tokens, tokens[..., None]], dim=2),
            token_log_probs=torch.cat([self.token_log_probs, token_log_probs[..., None]], dim=2),
            log_probs=log_probs,
        )

    def padded(self, length: int) -> Targets:
        """The same, `length` wide."""
        missing = (0, length - self.length)
        return Targets(
            tokens=F.pad(self.tokens, missing, value=PAD),
            token_log_probs=F.pad(self.token_log_probs, missing),
            log_probs=self.log_probs,
        )


def empty_targets(like: Tensor, count: int, *, log_prob: float) -> Targets:
    """`count` targets without tokens for each sentence of `like (b, ...)`, all of one log-probability."""
    shape, device = (len(like), count), like.device
    return Targets(
        tokens=torch.empty((*shape, 0), dtype=torch.int64, device=device),
        token_log_probs=torch.empty((*shape, 0), dtype=torch.float64, device=device),
        log_probs=torch.full(shape, log_prob, dtype=torch.float64, device=device),
    )


def joined(first: Targets, second: Targets) -> Targets:
    """The hypotheses of both, sentence by sentence."""
    length = max(first.length, second.length)
    first, second = first.padded(length), second.padded(length)
    return Targets(
        tokens=torch.cat([first.tokens, second.tokens], dim=1),
        token_log_probs=torch.cat([first.token_log_probs, second.token_log_probs], dim=1),
        log_probs=torch.cat([first.log_probs, second.log_probs], dim=1),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class NBest:
    """As many finished hypotheses of each of b sentences, best first; some places may be empty."""

    targets: Targets
    """`(b, n)` of them."""

    scores: Tensor
    """`(b, n)` float64, what they are ranked by; -∞ where there is no hypothesis."""

    def of(self, sentences: Tensor) -> NBest:
        """Those of some sentences `(n,)`."""
        return NBest(targets=self.targets.of(sentences), scores=self.scores[sentences])

    def with_(self, ended: Targets, penalty: Tensor) -> NBest:
        """The best of these and of newly `ended (b, k)` ones; of equal ones, those that ended first.

        Args:
            ended: Hypotheses of one length.
            penalty: Its length penalty.
        """
        scores = torch.cat([self.scores, ended.log_probs / penalty], dim=1)
        best, places = scores.sort(dim=1, descending=True, stable=True)
        count = self.scores.size(1)
        return NBest(targets=joined(self.targets, ended).take(places[:, :count]), scores=best[:, :count])

    def hypotheses(self) -> list[list[Hypothesis]]:
        """The hypotheses of each sentence, best first."""
        found = self.targets
        columns = (found.tokens, found.token_log_probs, found.log_probs, self.scores)
        sentences = zip(*(column.tolist() for column in columns), strict=True)
        return [
            [_hypothesis(*place) for place in zip(*sentence, strict=True) if place[-1] > -torch.inf]
            for sentence in sentences
        ]


def no_n_best(like: Tensor, count: int) -> NBest:
    """`count` empty places for each sentence of `like (b, ...)`."""
    targets = empty_targets(like, count, log_prob=-torch.inf)
    return NBest(targets=targets, scores=targets.log_probs)


def ranked(targets: Targets, penalty: LengthPenalty) -> NBest:
    """Finished hypotheses `(b, k)`, best first."""
    lengths = (targets.tokens != PAD).sum(dim=2)
    scores = targets.log_probs / penalty.of(lengths)
    best, places = scores.sort(dim=1, descending=True, stable=True)
    return NBest(targets=targets.take(places), scores=best)


def _hypothesis(tokens: list[int], token_log_probs: list[float], log_prob: float, score: float) -> Hypothesis:
    length = tokens.index(PAD) if PAD in tokens else len(tokens)
    return Hypothesis(
        tokens=tuple(tokens[:length]),
        token_log_probs=tuple(token_log_probs[:length]),
        log_prob=log_prob,
        score=score,
    )
