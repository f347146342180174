"""A comparison as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from mnmt_eval.comparing import Comparison, MetricComparison, SystemScore
from mnmt_eval.metrics import PairedTest


def comparison_document(comparison: Comparison) -> dict[str, Any]:
    """The comparison in plain values: a list of metrics, each with a list of systems."""
    how = comparison.comparing
    return {
        "testset": comparison.testset,
        "task": comparison.task,
        "sentences": comparison.sentences,
        "baseline": comparison.baseline,
        "test": how.test,
        "samples": how.samples,
        "permutations": how.permutations,
        "seed": how.seed,
        "searches": dict(comparison.searches),
        "metrics": [_metric(each) for each in comparison.metrics],
    }


def _metric(compared: MetricComparison) -> dict[str, Any]:
    return {
        "metric": compared.metric,
        "higher_is_better": compared.higher_is_better,
        "systems": [_system(score) for score in compared.scores],
    }


def _system(score: SystemScore) -> dict[str, Any]:
    return {
        "system": score.system,
        "signature": score.signature,
        "value": score.value,
        "interval": [score.lower, score.upper],
        "against_baseline": None if score.test is None else _test(score.test),
        "groups": [asdict(group) for group in score.groups],
    }


def _test(test: PairedTest) -> dict[str, Any]:
    interval = test.interval
    return {
        "difference": test.difference,
        "interval": None if interval is None else [interval.lower, interval.upper],
        "p_value": test.p_value,
        "signature": test.signature,
    }
