"""Metrics with their signatures, confidence intervals and paired tests; no torch needed but for BLEURT."""

from mnmt_eval.metrics.bleu import Bleu
from mnmt_eval.metrics.bleurt import Bleurt
from mnmt_eval.metrics.bootstrap import ConfidenceInterval, bootstrap
from mnmt_eval.metrics.chrf import Chrf
from mnmt_eval.metrics.comet import Comet
from mnmt_eval.metrics.language import LanguageAccuracy
from mnmt_eval.metrics.metric import Metric
from mnmt_eval.metrics.options import BleurtOptions, CometOptions, LanguageOptions, MetricOptions
from mnmt_eval.metrics.paired import PairedTest, paired_bootstrap, paired_permutation
from mnmt_eval.metrics.registry import METRICS, metric
from mnmt_eval.metrics.score import Score
from mnmt_eval.metrics.ter import Ter

__all__ = [
    "METRICS",
    "Bleu",
    "Bleurt",
    "BleurtOptions",
    "Chrf",
    "Comet",
    "CometOptions",
    "ConfidenceInterval",
    "LanguageAccuracy",
    "LanguageOptions",
    "Metric",
    "MetricOptions",
    "PairedTest",
    "Score",
    "Ter",
    "bootstrap",
    "metric",
    "paired_bootstrap",
    "paired_permutation",
]
