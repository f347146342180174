"""Comparing systems on one text: every metric with its interval, and significance against a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mnmt_eval.analysis import GroupScore, score_groups
from mnmt_eval.errors import EvalError
from mnmt_eval.kept_translations import digest
from mnmt_eval.metric_choice import MetricChoice
from mnmt_eval.metrics import Metric
from mnmt_eval.metrics.bootstrap import BOOTSTRAP_SAMPLES, SEED, bootstrap
from mnmt_eval.metrics.paired import PERMUTATION_SAMPLES, PairedTest, paired_bootstrap, paired_permutation
from mnmt_eval.reference_text import ReferenceText
from mnmt_eval.sentence_scores import read_scores, scores_path
from mnmt_eval.systems import TranslatedText, Translations

Statistics = NDArray[np.float64]

TESTS = ("bootstrap", "permutation")
"""Tests of significance: Koehn 2004, and approximate randomisation (Riezler and Maxwell 2005)."""


@dataclass(frozen=True, kw_only=True)
class Comparing:
    """How systems are compared.

    Raises:
        EvalError: if a field is out of its range.
    """

    metrics: MetricChoice = field(default_factory=MetricChoice)
    test: str = "bootstrap"
    """The test of significance, one of `TESTS`."""

    samples: int = BOOTSTRAP_SAMPLES
    """Resamples of the bootstrap, for intervals and test."""

    permutations: int = PERMUTATION_SAMPLES
    """Random exchanges of the permutation test."""

    seed: int = SEED
    grouping: str | None = None
    """How sentences are grouped to be scored apart, one of `GROUPINGS`."""

    def __post_init__(self) -> None:
        if self.test not in TESTS:
            raise EvalError(f"`test` must be one of {', '.join(TESTS)}, but is {self.test!r}.")
        for name in ("samples", "permutations"):
            if (value := getattr(self, name)) < 1:
                raise EvalError(f"`{name}` must be at least 1, but is {value}.")


@dataclass(frozen=True, kw_only=True)
class SystemScore:
    """One metric of one system."""

    system: str
    value: float
    lower: float
    """Of the 95% bootstrap interval."""

    upper: float
    test: PairedTest | None
    """Against the baseline; None for the baseline itself, or without one."""

    groups: tuple[GroupScore, ...]
    """The metric of each group of sentences; empty where none are asked for."""


@dataclass(frozen=True, kw_only=True)
class MetricComparison:
    """One metric of all systems."""

    metric: str
    signature: str
    higher_is_better: bool
    scores: tuple[SystemScore, ...]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Systems side by side on one text."""

    testset: str
    task: str
    sentences: int
    baseline: str | None
    """The system that differences are from; None where there is only one system."""

    comparing: Comparing
    metrics: tuple[MetricComparison, ...]


def compare_systems(
    translated: TranslatedText, comparing: Comparing, *, baseline: str | None = None
) -> Comparison:
    """Compare systems on one text.

    Statistics that a run keeps of exactly these translations are used again.

    Args:
        translated: the text, and the systems' translations.
        comparing: how.
        baseline: the system that others are tested against; by default the first.

    Raises:
        EvalError: if there is no such baseline, a metric is unknown, or it lacks what it needs.
    """
    names = translated.names
    if baseline is not None and baseline not in names:
        raise EvalError(f"the baseline must be one of {', '.join(names)}, but is {baseline!r}.")
    chosen = (baseline or names[0]) if len(names) > 1 else None
    groups = None if comparing.grouping is None else translated.text.groups(comparing.grouping)
    statistics = system_statistics(translated, comparing.metrics)
    return Comparison(
        testset=translated.text.testset,
        task=translated.text.task,
        sentences=len(translated.text),
        baseline=chosen,
        comparing=comparing,
        metrics=tuple(_compare(m, made, comparing, chosen, groups) for m, made in statistics),
    )


def system_statistics(
    translated: TranslatedText, choice: MetricChoice
) -> list[tuple[Metric, dict[str, Statistics]]]:
    """For each metric {system: what it finds in each sentence}, taken from runs that keep it.

    Raises:
        EvalError: if a metric lacks what it needs.
    """
    choice.check_systems(len(translated.translations))
    columns = [(made, _metrics(translated, made, choice)) for made in translated.translations]
    return [
        (
            columns[0][1][place],
            {
                made.system.name: _statistics(metrics[place], made, translated.text)
                for made, metrics in columns
            },
        )
        for place in range(len(choice.names))
    ]


def _metrics(translated: TranslatedText, made: Translations, choice: MetricChoice) -> list[Metric]:
    text = translated.text
    return choice.of(
        system=made.system.name,
        testset=text.testset,
        task=text.task,
        tasks=text.tasks,
        num_references=len(text.references),
    )


def _statistics(metric: Metric, made: Translations, text: ReferenceText) -> Statistics:
    if made.system.is_run:
        kept = read_scores(scores_path(made.system.path, text.testset, text.task, metric.name))
        if kept and (kept.metric, kept.translations) == (metric.signature, digest(made.lines)):
            return kept.statistics
    return metric.sentence_statistics(made.lines, text.references, text.src)


def _compare(
    metric: Metric,
    statistics: Mapping[str, Statistics],
    comparing: Comparing,
    baseline: str | None,
    groups: Sequence[str] | None,
) -> MetricComparison:
    scores = tuple(_score(metric, name, statistics, comparing, baseline, groups) for name in statistics)
    return MetricComparison(
        metric=metric.name,
        signature=metric.signature,
        higher_is_better=metric.higher_is_better,
        scores=scores,
    )


def _score(
    metric: Metric,
    name: str,
    statistics: Mapping[str, Statistics],
    comparing: Comparing,
    baseline: str | None,
    groups: Sequence[str] | None,
) -> SystemScore:
    own = statistics[name]
    test = None
    if baseline is not None and baseline != name:
        test = _test(metric, statistics[baseline], own, comparing)
    interval = bootstrap(metric, own, samples=comparing.samples, seed=comparing.seed)
    return SystemScore(
        system=name,
        value=interval.value,
        lower=interval.lower,
        upper=interval.upper,
        test=test,
        groups=() if groups is None else score_groups(lambda rows: metric.corpus(rows).value, own, groups),
    )


def _test(metric: Metric, baseline: Statistics, system: Statistics, comparing: Comparing) -> PairedTest:
    if comparing.test == "permutation":
        return paired_permutation(
            metric, baseline, system, samples=comparing.permutations, seed=comparing.seed
        )
    return paired_bootstrap(metric, baseline, system, samples=comparing.samples, seed=comparing.seed)
