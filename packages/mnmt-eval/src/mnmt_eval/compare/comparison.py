"""Comparing systems on one text: every metric with its interval, and significance against a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mnmt_eval.compare.groups import GroupScore, group_sentences, score_groups
from mnmt_eval.compare.systems import TranslatedText, Translations
from mnmt_eval.errors import EvalError
from mnmt_eval.metrics import Metric
from mnmt_eval.metrics.metric import Floats
from mnmt_eval.metrics.registry import MetricChoice
from mnmt_eval.metrics.resampling import BOOTSTRAP_SAMPLES, SEED, ConfidenceInterval, bootstrap
from mnmt_eval.metrics.significance import (
    PERMUTATION_SAMPLES,
    PairedTest,
    paired_bootstrap,
    paired_permutation,
)
from mnmt_eval.runs.sentence_scores import read_scores, scores_path
from mnmt_eval.runs.texts import ReferenceText
from mnmt_eval.text import digest

TESTS = ("permutation", "bootstrap")
"""Tests of significance: approximate randomisation (Riezler and Maxwell 2005), and Koehn 2004."""


@dataclass(frozen=True, kw_only=True)
class Comparing:
    """How systems are compared.

    Raises:
        EvalError: If a field is out of its range.
    """

    metrics: MetricChoice = field(default_factory=MetricChoice)
    test: str = "permutation"
    """The test of significance, one of `TESTS`; the bootstrap's p-values are too small for some metrics."""

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
        for name, least in {"samples": 1, "permutations": 1, "seed": 0}.items():
            if (value := getattr(self, name)) < least:
                raise EvalError(f"`{name}` must be at least {least}, but is {value}.")


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """What a metric finds in one system's translations."""

    metric: Metric
    statistics: Floats
    """(sentences, k)."""

    def interval(self, *, samples: int = BOOTSTRAP_SAMPLES, seed: int = SEED) -> ConfidenceInterval:
        """The value with its 95% bootstrap interval."""
        return bootstrap(self.metric, self.statistics, samples=samples, seed=seed)


@dataclass(frozen=True, kw_only=True)
class SystemScore:
    """One metric of one system."""

    system: str
    signature: str
    """The metric's; COMET's holds the file of this system's scores."""

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
    higher_is_better: bool
    scores: tuple[SystemScore, ...]

    @property
    def signatures(self) -> dict[str, list[str]]:
        """{signature: the systems it is of}; mostly one."""
        return by_value({score.system: score.signature for score in self.scores})


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Systems side by side on one text."""

    testset: str
    task: str
    sentences: int
    baseline: str | None
    """The system that differences are from; None where there is only one system."""

    comparing: Comparing
    searches: Mapping[str, str]
    """{system: signature of its search}, of runs."""

    metrics: tuple[MetricComparison, ...]


def by_value(values: Mapping[str, str]) -> dict[str, list[str]]:
    """{value: the names that have it}."""
    found: dict[str, list[str]] = {}
    for name, value in values.items():
        found.setdefault(value, []).append(name)
    return found


def compare_systems(
    translated: TranslatedText, comparing: Comparing, *, baseline: str | None = None
) -> Comparison:
    """Compare systems on one text.

    Statistics that a run keeps of exactly these translations and references are used again.

    Args:
        translated: The text, and the systems' translations.
        comparing: How.
        baseline: The system that others are tested against; by default the first.

    Raises:
        EvalError: If there is no such baseline, a metric is unknown, or it lacks what it needs.
    """
    names = translated.names
    if baseline is not None and baseline not in names:
        raise EvalError(f"the baseline must be one of {', '.join(names)}, but is {baseline!r}.")
    chosen = (baseline or names[0]) if len(names) > 1 else None
    groups = None if comparing.grouping is None else group_sentences(translated.text, comparing.grouping)
    measured = measure_systems(translated, comparing.metrics)
    return Comparison(
        testset=translated.text.testset,
        task=translated.text.task,
        sentences=len(translated.text),
        baseline=chosen,
        comparing=comparing,
        searches=translated.searches,
        metrics=tuple(_compare(systems, comparing, chosen, groups) for systems in measured),
    )


def measure_systems(translated: TranslatedText, choice: MetricChoice) -> list[dict[str, Measured]]:
    """For each metric chosen, {system: what it finds}, taken from runs that keep it.

    Raises:
        EvalError: If a metric lacks what it needs.
    """
    text, made = translated.text, translated.translations
    metrics = [_metrics(translated, system, choice) for system in made]
    choice.check_systems(translated.names, testset=text.testset, task=text.task)
    return [
        {
            system.system.name: Measured(metric=m, statistics=_statistics(m, system, text))
            for m, system in zip(of_one_name, made, strict=True)
        }
        for of_one_name in zip(*metrics, strict=True)
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


def _statistics(metric: Metric, made: Translations, text: ReferenceText) -> Floats:
    if made.system.is_run:
        kept = read_scores(scores_path(made.system.path, text.testset, text.task, metric.name))
        measured = (metric.signature, digest(made.lines), text.digest)
        if kept and (kept.metric, kept.translations, kept.text) == measured:
            return kept.statistics
    return metric.sentence_statistics(made.lines, text.references, text.src)


def _compare(
    systems: Mapping[str, Measured], comparing: Comparing, baseline: str | None, groups: Sequence[str] | None
) -> MetricComparison:
    metric = next(iter(systems.values())).metric
    return MetricComparison(
        metric=metric.name,
        higher_is_better=metric.higher_is_better,
        scores=tuple(_score(name, systems, comparing, baseline, groups) for name in systems),
    )


def _score(
    name: str,
    systems: Mapping[str, Measured],
    comparing: Comparing,
    baseline: str | None,
    groups: Sequence[str] | None,
) -> SystemScore:
    own, value = systems[name], systems[name].metric.corpus
    test = None
    if baseline is not None and baseline != name:
        test = _test(own.metric, systems[baseline].statistics, own.statistics, comparing)
    interval = own.interval(samples=comparing.samples, seed=comparing.seed)
    return SystemScore(
        system=name,
        signature=own.metric.signature,
        value=interval.value,
        lower=interval.lower,
        upper=interval.upper,
        test=test,
        groups=() if groups is None else score_groups(lambda rows: value(rows).value, own.statistics, groups),
    )


def _test(metric: Metric, baseline: Floats, system: Floats, comparing: Comparing) -> PairedTest:
    """The test asked for, with the bootstrap's interval of the difference."""
    seed = comparing.seed
    resampled = paired_bootstrap(metric, baseline, system, samples=comparing.samples, seed=seed)
    if comparing.test == "bootstrap":
        return resampled
    exchanged = paired_permutation(metric, baseline, system, samples=comparing.permutations, seed=seed)
    return replace(exchanged, interval=resampled.interval)
