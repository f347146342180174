"""Metrics' statistics of systems' translations, computed or as runs have stored them."""

from __future__ import annotations

from dataclasses import dataclass

from mnmt_eval.compare.systems import SystemOutput, TranslatedText
from mnmt_eval.metrics.metric import Floats, Metric
from mnmt_eval.metrics.registry import MetricSet
from mnmt_eval.runs.run_files import read_scores, scores_path
from mnmt_eval.runs.texts import ReferenceText
from mnmt_eval.text import checksum


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement:
    """A metric's statistics of one system's translations."""

    metric: Metric
    statistics: Floats
    """(sentences, k)."""


def measure_systems(translated: TranslatedText, metrics: MetricSet) -> list[dict[str, Measurement]]:
    """Return {system: measurement} for each metric; runs may have stored the statistics.

    Raises:
        EvalError: If a metric lacks what it needs.
    """
    text, outputs = translated.text, translated.outputs
    by_system = [_metrics_of(output, text, metrics) for output in outputs]
    metrics.check_systems(translated.names, testset=text.testset, task=text.task)
    return [
        {
            output.system.name: Measurement(metric=m, statistics=_statistics(m, output, text))
            for m, output in zip(same_metric, outputs, strict=True)
        }
        for same_metric in zip(*by_system, strict=True)
    ]


def _metrics_of(output: SystemOutput, text: ReferenceText, metrics: MetricSet) -> list[Metric]:
    return metrics.make(
        system=output.system.name,
        testset=text.testset,
        task=text.task,
        tasks=text.tasks,
        num_references=len(text.references),
    )


def _statistics(metric: Metric, output: SystemOutput, text: ReferenceText) -> Floats:
    if output.system.is_run:
        stored = read_scores(scores_path(output.system.path, text.testset, text.task, metric.name))
        settings = (metric.signature, checksum(output.lines), text.checksum)
        if stored and (stored.metric, stored.translations, stored.text) == settings:
            return stored.statistics
    return metric.sentence_statistics(output.lines, text.references, text.src)
