"""What all metrics have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mnmt_eval.metrics.scale import higher_is_better
from mnmt_eval.metrics.score import Score

Floats: TypeAlias = NDArray[np.float64]


class Metric(Protocol):
    """A metric of a corpus that depends on its sentences only through sums over them.

    The statistics of the sentences are computed once; the value of the corpus, of any part of it and of any
    resample of it is then a function of their sum.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name in the registry."""

    @property
    @abstractmethod
    def signature(self) -> str:
        """All that is needed to compute the same value again: `nrefs:1|…`."""

    @property
    def higher_is_better(self) -> bool:
        """Whether a better translation has a higher value."""
        return higher_is_better(self.name)

    @abstractmethod
    def sentence_statistics(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str] = ()
    ) -> Floats:
        """What the metric must know of each sentence, (sentences, k).

        Args:
            hypotheses: A system's output.
            references: The sentences of the first reference, those of the second, …
            sources: What was translated, for metrics that look at it.

        Raises:
            EvalError: If these do not belong together.
        """

    @abstractmethod
    def values(self, totals: Floats) -> Floats:
        """Values of corpora whose statistics sum to `totals`, (…, k); of shape (…)."""

    def sentence_scores(self, statistics: Floats) -> Floats:
        """The value of each sentence alone, (sentences,)."""
        return self.values(statistics)

    def corpus(self, statistics: Floats) -> Score:
        """The value of the corpus whose sentences have these statistics, (sentences, k)."""
        return self._scored(float(self.values(statistics.sum(axis=0))))

    def score(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str] = ()
    ) -> Score:
        """The value of a system's output; arguments as of `sentence_statistics`."""
        return self.corpus(self.sentence_statistics(hypotheses, references, sources))

    def _scored(self, value: float) -> Score:
        return Score(name=self.name, value=value, signature=self.signature)
