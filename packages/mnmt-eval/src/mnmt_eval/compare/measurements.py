"""Metrics' statistics of systems' translations, computed or as runs have stored them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mnmt_data.store import read_record
from mnmt_eval.compare.config import CompareConfig
from mnmt_eval.compare.score_files import read_scores
from mnmt_eval.compare.systems import SystemOutput, TranslatedText
from mnmt_eval.errors import EvalError
from mnmt_eval.metrics.protocol import Floats, Metric
from mnmt_eval.metrics.registry import MetricSet
from mnmt_eval.runs.losses import Loss, sentence_losses
from mnmt_eval.runs.run_files import SentenceScores, scores_path
from mnmt_eval.runs.texts import ReferenceText
from mnmt_eval.text import checksum


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement:
    """A metric's statistics of several systems' translations of one text."""

    metric: Metric
    systems: Mapping[str, Floats]
    """{system: its statistics, (sentences, k)}."""


def measure(translated: TranslatedText, config: CompareConfig) -> list[Measurement]:
    """Return the statistics by each metric, by scores from files and, if requested, the losses.

    Raises:
        EvalError: If a metric lacks an extra, a model or an option, or a loss its run.
        RunError: If a run cannot be loaded for its losses.
        DataError: If its data cannot be read.
    """
    from_files = (read_scores(files, translated) for files in config.scores)
    return [
        *measure_systems(translated, config.metrics),
        *(Measurement(metric=metric, systems=systems) for metric, systems in from_files),
        *([measure_losses(translated)] if config.losses else []),
    ]


def measure_systems(translated: TranslatedText, metrics: MetricSet) -> list[Measurement]:
    """Return the statistics by each metric; runs may have stored them.

    Raises:
        EvalError: If a metric lacks an extra, a model or an option.
    """
    text = translated.text
    return [
        Measurement(metric=metric, systems=_statistics(metric, translated))
        for metric in metrics.make(task=text.task, tasks=text.tasks, num_references=len(text.references))
    ]


def measure_losses(translated: TranslatedText) -> Measurement:
    """Return the runs' losses on the references.

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
    return Measurement(metric=Loss(), systems=losses)


def _statistics(metric: Metric, translated: TranslatedText) -> dict[str, Floats]:
    """Return {system: its statistics}, as stored or else computed."""
    text, outputs = translated.text, translated.outputs
    stored = {o.system.name: known for o in outputs if (known := _stored(metric, o, text)) is not None}
    others = [o for o in outputs if o.system.name not in stored]
    computed = metric.system_statistics([o.lines for o in others], text.references, text.src)
    statistics = stored | {o.system.name: text.weigh(each) for o, each in zip(others, computed, strict=True)}
    return {name: statistics[name] for name in translated.names}


def _stored(metric: Metric, output: SystemOutput, text: ReferenceText) -> Floats | None:
    """Return the statistics that a run has stored for exactly these translations and references."""
    if not output.system.is_run:
        return None
    path = scores_path(output.system.path, text.testset, text.task, metric.name)
    stored = read_record(path, SentenceScores)
    settings = (metric.signature, checksum(output.lines), text.checksum)
    is_same = stored and (stored.metric, stored.translations, stored.text) == settings
    return stored.statistics if stored and is_same else None
