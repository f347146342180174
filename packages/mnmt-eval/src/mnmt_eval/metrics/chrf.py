"""ChrF."""

from __future__ import annotations

from sacrebleu.metrics.chrf import CHRF

from mnmt_eval.metrics.corpus_metric import ONE_REFERENCE, CorpusMetric


def chrf() -> CorpusMetric:
    """Corpus chrF2 (Popović 2015): F-score, recall counting twice, of character n-grams up to 6."""
    return CorpusMetric(name="chrf", scorer=CHRF(references=ONE_REFERENCE))
