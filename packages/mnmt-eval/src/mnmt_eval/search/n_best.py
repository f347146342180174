"""The best finished hypotheses of every sentence of a batch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from mnmt_eval.protocol import PAD
from mnmt_eval.search.hypothesis import Hypothesis
from mnmt_eval.search.length import LengthPenalty
from mnmt_eval.search.targets import Targets, empty_targets, joined


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
