"""sacreBLEU's metrics with their signatures; no torch needed."""

from mnmt_eval.metrics.bleu import bleu
from mnmt_eval.metrics.chrf import chrf
from mnmt_eval.metrics.corpus_metric import CorpusMetric
from mnmt_eval.metrics.registry import METRICS, metric
from mnmt_eval.metrics.score import Score

__all__ = ["METRICS", "CorpusMetric", "Score", "bleu", "chrf", "metric"]
