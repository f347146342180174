"""Metrics' statistics of systems' translations, computed or as runs have stored them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mnmt_data.store import read_record
from mnmt_eval.compare.systems import SystemOutput, TranslatedText
from mnmt_eval.errors import EvalError
from mnmt_eval.metrics.protocol import Floats, Metric
from mnmt_eval.metrics.registry import MetricSet
from mnmt_eval.runs.losses import Loss, sentence_losses
from mnmt_eval.runs.run_files import SentenceScores, scores_path
from mnmt_eval.runs.texts import ReferenceText
from mnmt_eval.text import checksum


@dataclass(frozen=True, kw_only=True, eq=False)
class SystemStatistics:
    """A metric's statistics of one system's translations."""

    metric: Metric
    statistics: Floats
    """(sentences, k)."""


def measure(
    translated: TranslatedText, metrics: MetricSet, *, losses: bool = False
) -> list[dict[str, SystemStatistics]]:
    """Return {system: measurement} for each metric and, if requested, for the losses.

    Raises:
        EvalError: If a metric lacks an extra, a model or an option, or a loss its run.
        RunError: If a run cannot be loaded for its losses.
        DataError: If its data cannot be read.
    """
    of_outputs = measure_systems(translated, metrics)
    return [*of_outputs, measure_losses(translated)] if losses else of_outputs


def measure_systems(translated: TranslatedText, metrics: MetricSet) -> list[dict[str, SystemStatistics]]:
    """Return {system: measurement} for each metric; runs may have stored the statistics.

    Raises:
        EvalError: If a metric lacks an extra, a model or an option.
    """
    text = translated.text
    same_metrics = metrics.make(task=text.task, tasks=text.tasks, num_references=len(text.references))
    return [
        {
            output.system.name: SystemStatistics(metric=m, statistics=_statistics(m, output, text))
            for output in translated.outputs
        }
        for m in same_metrics
    ]


def measure_losses(translated: TranslatedText) -> dict[str, SystemStatistics]:
    """Return {run: its losses on the references}.

    Raises:
        EvalError: If a system is no run, the text is not of its data, or vocabularies differ.
        RunError: If a run cannot be loaded.
        DataError: If its data cannot be read.
    """
    for output in translated.outputs:
        if not output.system.is_run:
            raise EvalError(f"{output.system.name}: only runs have losses; leave out --losses.")
    losses = {o.system.name: sentence_losses(o.system.path, translated.text) for o in translated.outputs}
    first, *others = losses
    for name in others:
        if not np.array_equal(losses[first][:, 1], losses[name][:, 1]):
            raise EvalError(f"{first} and {name}: have other vocabularies, so their losses do not compare.")
    return {name: SystemStatistics(metric=Loss(), statistics=each) for name, each in losses.items()}


def _statistics(metric: Metric, output: SystemOutput, text: ReferenceText) -> Floats:
    if output.system.is_run:
        stored = read_record(
            scores_path(output.system.path, text.testset, text.task, metric.name), SentenceScores
        )
        settings = (metric.signature, checksum(output.lines), text.checksum)
        if stored and (stored.metric, stored.translations, stored.text) == settings:
            return stored.statistics
    return metric.sentence_statistics(output.lines, text.references, text.src)
