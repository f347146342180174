"""A comparison of systems on one text: metrics with intervals, and significance against a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mnmt_eval.compare.groups import GroupScore, group_sentences, score_groups
from mnmt_eval.compare.systems import SystemOutput, TranslatedText
from mnmt_eval.errors import EvalError
from mnmt_eval.metrics.metric import Floats, Metric
from mnmt_eval.metrics.registry import MetricSet
from mnmt_eval.metrics.resampling import BOOTSTRAP_SAMPLES, SEED, ConfidenceInterval, bootstrap
from mnmt_eval.metrics.significance import (
    PERMUTATION_SAMPLES,
    PairedTest,
    paired_bootstrap,
    paired_permutation,
)
from mnmt_eval.runs.run_files import read_scores, scores_path
from mnmt_eval.runs.texts import ReferenceText
from mnmt_eval.text import checksum

TESTS = ("permutation", "bootstrap")
"""Tests of significance: approximate randomisation (Riezler and Maxwell 2005), and Koehn 2004."""


@dataclass(frozen=True, kw_only=True)
class CompareConfig:
    """The options of a comparison.

    Raises:
        EvalError: If a field is out of its range.
    """

    metrics: MetricSet = field(default_factory=MetricSet)
    test: str = "permutation"
    """The test of significance, one of `TESTS`; the bootstrap's p-values are too small for some metrics."""
    samples: int = BOOTSTRAP_SAMPLES
    """Resamples of the bootstrap, for intervals and test."""
    permutations: int = PERMUTATION_SAMPLES
    """Random exchanges of the permutation test."""
    seed: int = SEED
    """Seed of the bootstrap and of the permutation test."""
    grouping: str | None = None
    """How sentences are grouped to be scored apart, one of `GROUPINGS`; by default not at all."""

    def __post_init__(self) -> None:
        if self.test not in TESTS:
            raise EvalError(f"`test` must be one of {', '.join(TESTS)}, but is {self.test!r}.")
        for name, least in {"samples": 1, "permutations": 1, "seed": 0}.items():
            if (value := getattr(self, name)) < least:
                raise EvalError(f"`{name}` must be at least {least}, but is {value}.")


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement:
    """A metric's statistics of one system's translations."""

    metric: Metric
    statistics: Floats
    """(sentences, k)."""

    def interval(self, *, samples: int = BOOTSTRAP_SAMPLES, seed: int = SEED) -> ConfidenceInterval:
        """Return the value with its 95% bootstrap interval."""
        return bootstrap(self.metric, self.statistics, samples=samples, seed=seed)


@dataclass(frozen=True, kw_only=True)
class SystemScore:
    """One metric of one system."""

    system: str
    signature: str
    """The metric's signature; COMET's contains the file of this system's scores."""
    value: float
    lower: float
    """The lower end of the 95% bootstrap interval."""
    upper: float
    """The upper end of the 95% bootstrap interval."""
    test: PairedTest | None
    """The test against the baseline; None for the baseline itself, or without one."""
    groups: tuple[GroupScore, ...]
    """The metric of each group of sentences; empty if no grouping was requested."""


@dataclass(frozen=True, kw_only=True)
class MetricComparison:
    """One metric of all systems."""

    metric: str
    higher_is_better: bool
    scores: tuple[SystemScore, ...]

    @property
    def signatures(self) -> dict[str, list[str]]:
        """{signature: its systems}; mostly there is one signature."""
        return group_by_value({score.system: score.signature for score in self.scores})


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Systems side by side on one text."""

    testset: str
    task: str
    sentences: int
    baseline: str | None
    """The system that the others are tested against; None if there is only one system."""
    config: CompareConfig
    searches: Mapping[str, str]
    """{system: signature of its search} of runs."""
    metrics: tuple[MetricComparison, ...]


def compare_systems(
    translated: TranslatedText, config: CompareConfig, *, baseline: str | None = None
) -> Comparison:
    """Compare systems on one text.

    Statistics that a run has stored for exactly these translations and references are used again.

    Args:
        translated: The text, and the systems' translations.
        config: The options.
        baseline: The system that others are tested against; by default the first.

    Raises:
        EvalError: If there is no such baseline, a metric is unknown, or it lacks what it needs.
    """
    names = translated.names
    if baseline is not None and baseline not in names:
        raise EvalError(f"the baseline must be one of {', '.join(names)}, but is {baseline!r}.")
    baseline = (baseline or names[0]) if len(names) > 1 else None
    groups = None if config.grouping is None else group_sentences(translated.text, config.grouping)
    measurements = measure_systems(translated, config.metrics)
    return Comparison(
        testset=translated.text.testset,
        task=translated.text.task,
        sentences=len(translated.text),
        baseline=baseline,
        config=config,
        searches=translated.searches,
        metrics=tuple(_compare(systems, config, baseline, groups) for systems in measurements),
    )


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


def group_by_value(values: Mapping[str, str]) -> dict[str, list[str]]:
    """Return {value: the names that have it}."""
    groups: dict[str, list[str]] = {}
    for name, value in values.items():
        groups.setdefault(value, []).append(name)
    return groups


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


def _compare(
    systems: Mapping[str, Measurement],
    config: CompareConfig,
    baseline: str | None,
    groups: Sequence[str] | None,
) -> MetricComparison:
    metric = next(iter(systems.values())).metric
    return MetricComparison(
        metric=metric.name,
        higher_is_better=metric.higher_is_better,
        scores=tuple(_score(name, systems, config, baseline, groups) for name in systems),
    )


def _score(
    name: str,
    systems: Mapping[str, Measurement],
    config: CompareConfig,
    baseline: str | None,
    groups: Sequence[str] | None,
) -> SystemScore:
    system, value = systems[name], systems[name].metric.corpus
    test = None
    if baseline is not None and baseline != name:
        test = _test(system.metric, systems[baseline].statistics, system.statistics, config)
    interval = system.interval(samples=config.samples, seed=config.seed)
    group_scores: tuple[GroupScore, ...] = ()
    if groups is not None:
        group_scores = score_groups(lambda rows: value(rows).value, system.statistics, groups)
    return SystemScore(
        system=name,
        signature=system.metric.signature,
        value=interval.value,
        lower=interval.lower,
        upper=interval.upper,
        test=test,
        groups=group_scores,
    )


def _test(metric: Metric, baseline: Floats, system: Floats, config: CompareConfig) -> PairedTest:
    """Return the requested test, with the bootstrap's interval of the difference."""
    resampled = paired_bootstrap(metric, baseline, system, samples=config.samples, seed=config.seed)
    if config.test == "bootstrap":
        return resampled
    permuted = paired_permutation(metric, baseline, system, samples=config.permutations, seed=config.seed)
    return replace(permuted, interval=resampled.interval)
