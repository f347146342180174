"""Metrics whose value is the mean of the sentences' scores."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from mnmt_eval.errors import EvalError
from mnmt_eval.metrics.alignment import check_alignment
from mnmt_eval.metrics.metric import Floats, Metric


class MeanMetric(Metric):
    """The mean over sentences of a score.

    Statistics: the score, and 1.
    """

    def __init__(self, *, num_references: int) -> None:
        self._num_references = num_references

    @abstractmethod
    def _scores(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str]
    ) -> Sequence[float]:
        """A score for each sentence."""

    def sentence_statistics(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str] = ()
    ) -> Floats:
        """The score, and 1, as in `Metric`."""
        check_alignment(self.name, hypotheses, references, sources, num_references=self._num_references)
        scores = np.asarray(self._scores(hypotheses, references, sources), dtype=np.float64)
        if not np.isfinite(scores).all():
            line = int(np.argmin(np.isfinite(scores))) + 1
            raise EvalError(
                f"{self.name}: must give finite scores, but gives {scores[line - 1]} for sentence {line}."
            )
        return np.column_stack([scores, np.ones_like(scores)])

    def values(self, totals: Floats) -> Floats:
        """The mean of the scores, as in `Metric`."""
        return np.asarray(totals[..., 0] / totals[..., 1])
