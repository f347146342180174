"""What the metrics of sacreBLEU have in common."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sacrebleu.metrics.base import Metric as SacrebleuScorer

from mnmt_eval.metrics.alignment import check_alignment
from mnmt_eval.metrics.metric import Floats, Metric
from mnmt_eval.metrics.score import Score


def blank_references(number: int) -> list[list[str]]:
    """What sacreBLEU must have seen before it can give the signature of a metric with `number` references."""
    return [[""]] * number


class SacrebleuMetric(Metric):
    """A metric whose statistics and corpus value sacreBLEU computes.

    Subclasses compute many values at a time, as resampling needs them.
    """

    def __init__(self, name: str, scorer: SacrebleuScorer, *, num_references: int) -> None:
        self._name = name
        self._scorer = scorer
        self._num_references = num_references
        self._signature = str(scorer.get_signature())

    @property
    def name(self) -> str:
        """Its name in the registry."""
        return self._name

    @property
    def signature(self) -> str:
        """As sacreBLEU gives it."""
        return self._signature

    def sentence_statistics(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str] = ()
    ) -> Floats:
        """The statistics of sacreBLEU, as in `Metric`."""
        check_alignment(self.name, hypotheses, references, sources, num_references=self._num_references)
        return np.array(self._scorer._extract_corpus_statistics(hypotheses, references), dtype=np.float64)

    def corpus(self, statistics: Floats) -> Score:
        """The value in sacreBLEU's own arithmetic, to be its own to the last bit."""
        return self._scored(float(self._scorer._aggregate_and_compute(statistics.tolist()).score))
