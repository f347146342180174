"""Hypotheses: single ones, those of a batch as arrays, and the n-best of every sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mnmt_eval.search.config import LengthPenalty
from mnmt_eval.search.protocol import EOS, PAD


@dataclass(frozen=True, kw_only=True)
class Hypothesis:
    """One translation as token ids."""

    tokens: tuple[int, ...]
    """Target tokens with the final `</s>`; without one, the maximal length cut the hypothesis off."""
    log_prob: float
    """The sum of the tokens' log-probabilities, in nats."""
    score: float
    """`log_prob` divided by the length penalty; hypotheses are ranked by it."""
    token_log_probs: tuple[float, ...] = ()
    """The log-probability of each token given source and earlier tokens; empty from CTranslate2."""

    @property
    def is_complete(self) -> bool:
        """Whether the hypothesis ends with `</s>`."""
        return self.tokens[-1] == EOS


@dataclass(frozen=True, kw_only=True, eq=False)
class Targets:
    """k hypotheses of each of b sentences as arrays; some places may be empty."""

    tokens: NDArray[np.int64]
    """`(b, k, length)`; padded where a hypothesis is shorter."""
    token_log_probs: NDArray[np.float64]
    """`(b, k, length)`; 0 at padding."""
    log_probs: NDArray[np.float64]
    """`(b, k)`, the sums of `token_log_probs`; -∞ at empty places."""

    @classmethod
    def empty(cls, batch: int, count: int, *, log_prob: float) -> Targets:
        """Return `count` targets without tokens, of one log-probability, for each sentence."""
        return cls(
            tokens=np.empty((batch, count, 0), dtype=np.int64),
            token_log_probs=np.empty((batch, count, 0)),
            log_probs=np.full((batch, count), log_prob),
        )

    @property
    def length(self) -> int:
        """The number of tokens of the longest hypothesis."""
        return int(self.tokens.shape[2])

    def select(self, sentences: NDArray[np.int64]) -> Targets:
        """Return the hypotheses of the given sentences `(n,)`."""
        return self._take(sentences)

    def gather(self, places: NDArray[np.int64]) -> Targets:
        """Return the hypotheses at `places (b, n)` of each sentence."""
        return self._take((np.arange(len(places))[:, None], places))

    def append(
        self, tokens: NDArray[np.int64], token_log_probs: NDArray[np.float64], log_probs: NDArray[np.float64]
    ) -> Targets:
        """Return each hypothesis with one more token; arguments are `(b, k)`, `log_probs` the new sums."""
        return Targets(
            tokens=np.concatenate([self.tokens, tokens[..., None]], axis=2),
            token_log_probs=np.concatenate([self.token_log_probs, token_log_probs[..., None]], axis=2),
            log_probs=log_probs,
        )

    def concatenate(self, other: Targets) -> Targets:
        """Return the hypotheses of both, sentence by sentence."""
        return Targets(
            tokens=_beside(self.tokens, other.tokens),
            token_log_probs=_beside(self.token_log_probs, other.token_log_probs),
            log_probs=np.concatenate([self.log_probs, other.log_probs], axis=1),
        )

    def _take(self, places: Any) -> Targets:
        return Targets(
            tokens=self.tokens[places],
            token_log_probs=self.token_log_probs[places],
            log_probs=self.log_probs[places],
        )


def _beside(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """Return the rows `(b, k, …)` of both tables, the shorter ones filled up with 0, which is `PAD` too."""
    (batch, count, length), (_, more, other_length) = first.shape, second.shape
    table = np.zeros((batch, count + more, max(length, other_length)), dtype=first.dtype)
    table[:, :count, :length] = first
    table[:, count:, :other_length] = second
    return table


@dataclass(frozen=True, kw_only=True, eq=False)
class NBest:
    """The n best finished hypotheses of each of b sentences, best first; some places may be empty."""

    targets: Targets
    """`(b, n)` hypotheses."""
    scores: NDArray[np.float64]
    """`(b, n)`; -∞ at empty places."""

    @classmethod
    def empty(cls, batch: int, count: int) -> NBest:
        """Return `count` empty places for each sentence."""
        targets = Targets.empty(batch, count, log_prob=-np.inf)
        return cls(targets=targets, scores=targets.log_probs)

    @classmethod
    def rank(cls, targets: Targets, penalty: LengthPenalty) -> NBest:
        """Return finished hypotheses `(b, k)`, best first."""
        lengths = (targets.tokens != PAD).sum(axis=2)
        return cls._best(targets, targets.log_probs / penalty.divisors(lengths), targets.log_probs.shape[1])

    @classmethod
    def _best(cls, targets: Targets, scores: NDArray[np.float64], count: int) -> NBest:
        places = (-scores).argsort(axis=1, kind="stable")[:, :count]
        return cls(targets=targets.gather(places), scores=np.take_along_axis(scores, places, axis=1))

    def select(self, sentences: NDArray[np.int64]) -> NBest:
        """Return the n-best of the given sentences `(n,)`."""
        return NBest(targets=self.targets.select(sentences), scores=self.scores[sentences])

    def update(self, finished: Targets, divisor: NDArray[np.float64]) -> NBest:
        """Return the n best of these and of newly `finished (b, k)` hypotheses.

        Of hypotheses with equal scores, the one that ended first comes first.

        Args:
            finished: Hypotheses of one length.
            divisor: The length penalty's divisor for that length.
        """
        scores = np.concatenate([self.scores, finished.log_probs / divisor], axis=1)
        return self._best(self.targets.concatenate(finished), scores, self.scores.shape[1])

    def hypotheses(self) -> list[list[Hypothesis]]:
        """Return the hypotheses of each sentence, best first."""
        targets = self.targets
        columns = (targets.tokens, targets.token_log_probs, targets.log_probs, self.scores)
        sentences = zip(*(column.tolist() for column in columns), strict=True)
        return [
            [_hypothesis(*place) for place in zip(*sentence, strict=True) if place[-1] > -np.inf]
            for sentence in sentences
        ]


def _hypothesis(tokens: list[int], token_log_probs: list[float], log_prob: float, score: float) -> Hypothesis:
    length = tokens.index(PAD) if PAD in tokens else len(tokens)
    return Hypothesis(
        tokens=tuple(tokens[:length]),
        log_prob=log_prob,
        score=score,
        token_log_probs=tuple(token_log_probs[:length]),
    )
