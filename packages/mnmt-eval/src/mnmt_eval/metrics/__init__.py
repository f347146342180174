"""Metrics with their signatures, confidence intervals and paired tests; no torch needed but for BLEURT."""

from mnmt_eval.metrics.bleurt import Bleurt
from mnmt_eval.metrics.comet import Comet
from mnmt_eval.metrics.config import BleurtConfig, CometConfig, LanguageConfig, MetricConfig
from mnmt_eval.metrics.language_accuracy import LanguageAccuracy
from mnmt_eval.metrics.metric import Floats, Metric, Score
from mnmt_eval.metrics.registry import METRICS, metric
from mnmt_eval.metrics.resampling import ConfidenceInterval, bootstrap
from mnmt_eval.metrics.sacrebleu_metrics import Bleu, Chrf, Ter
from mnmt_eval.metrics.significance import PairedTest, holm, paired_bootstrap, paired_permutation

__all__ = [
    "METRICS",
    "Bleu",
    "Bleurt",
    "BleurtConfig",
    "Chrf",
    "Comet",
    "CometConfig",
    "ConfidenceInterval",
    "Floats",
    "LanguageAccuracy",
    "LanguageConfig",
    "Metric",
    "MetricConfig",
    "PairedTest",
    "Score",
    "Ter",
    "bootstrap",
    "holm",
    "metric",
    "paired_bootstrap",
    "paired_permutation",
]
