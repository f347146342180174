"""A comparison of systems on one text: metrics with intervals, all pairs tested, and ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from mnmt_eval.compare.agreement import Agreement, agreements
from mnmt_eval.compare.config import SIGNIFICANT, CompareConfig
from mnmt_eval.compare.groups import group_rows, group_sentences
from mnmt_eval.compare.measurements import Measurement, measure
from mnmt_eval.compare.pairs import (
    CorrectedTest,
    PairTests,
    SentenceCounts,
    SystemPair,
    correct,
    count_sentences,
)
from mnmt_eval.compare.ranking import Rank, rank_systems
from mnmt_eval.compare.systems import TranslatedText
from mnmt_eval.errors import EvalError
from mnmt_eval.metrics.protocol import Floats, column_title
from mnmt_eval.metrics.resampling import ConfidenceInterval
from mnmt_eval.metrics.significance import Differences


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A value with its 95% bootstrap interval."""

    value: float
    lower: float
    upper: float


@dataclass(frozen=True, kw_only=True)
class GroupScore(Estimate):
    """A metric of the sentences of one group, as if they were the test set."""

    group: str
    sentences: int
    against_baseline: CorrectedTest | None
    """The test against the baseline, corrected for all groups and systems; None for the baseline itself."""


@dataclass(frozen=True, kw_only=True)
class SystemScore(Estimate):
    """One metric of one system."""

    system: str
    rank: Rank
    against_baseline: CorrectedTest | None
    """The test against the baseline, corrected for all pairs; None for the baseline itself."""
    sentences: SentenceCounts | None
    """Sentences that are better, as good and worse than the baseline's; None where there is no test."""
    groups: tuple[GroupScore, ...]
    """The metric of each group of sentences; empty if no grouping was requested."""


@dataclass(frozen=True, kw_only=True)
class MetricComparison:
    """One metric of all systems."""

    metric: str
    signature: str
    """The metric's signature."""
    higher_is_better: bool
    decimals: int
    """The decimals of its values that are worth reading."""
    scores: tuple[SystemScore, ...]
    """In the order in which the systems were named."""
    pairs: tuple[SystemPair, ...]
    """The tests of all pairs of systems; of those with the baseline, it is the first."""
    remarks: tuple[str, ...]
    """Why values mislead, a line each."""
    resampled: Mapping[str, Floats] = field(compare=False, repr=False)
    """{system: its values on the bootstrap's resamples, (samples,)}."""
    differences: Mapping[str, Differences] = field(compare=False, repr=False)
    """{system: its difference from the baseline, and that of each random exchange}."""

    @property
    def title(self) -> str:
        """The metric's name, with a note if lower is better."""
        return column_title(self.metric, higher=self.higher_is_better)

    @property
    def ranked(self) -> tuple[SystemScore, ...]:
        """The scores, best first."""
        sign = -1 if self.higher_is_better else 1
        return tuple(sorted(self.scores, key=lambda score: sign * score.value))


@dataclass(frozen=True, kw_only=True)
class TextComparison:
    """Systems side by side on one text."""

    testset: str
    task: str
    sentences: int
    documents: int
    """The number of documents that are drawn and exchanged as a whole; 0 if sentences are."""
    baseline: str | None
    """The system that the others are tested against; None if there is only one system."""
    config: CompareConfig
    searches: Mapping[str, str]
    """{system: signature of its search} of runs."""
    metrics: tuple[MetricComparison, ...]
    agreements: tuple[Agreement, ...] = ()
    """How far each metric agrees with people's scores, if any are named."""

    @property
    def name(self) -> str:
        """Test set and language pair, without unknown ones."""
        return f"{self.testset} {self.task}".strip()


def compare_systems(
    translated: TranslatedText, config: CompareConfig, *, baseline: str | None = None
) -> TextComparison:
    """Compare systems on one text.

    Statistics that a run has stored for exactly these translations and references are used again.

    Args:
        translated: The text, and the systems' translations.
        config: The options.
        baseline: The system that others are tested against; by default the first.

    Raises:
        EvalError: If there is no such baseline, or a metric is unknown or cannot be used.
    """
    check_baseline(translated, baseline)
    measurements = measure(translated, config)
    return compare_measurements(translated, measurements, config, baseline=baseline)


def all_remarks(translated: Sequence[TranslatedText], comparisons: Sequence[TextComparison]) -> list[str]:
    """Return the remarks on the texts, and those of the metrics."""
    of_metrics = (metric.remarks for each in comparisons for metric in each.metrics)
    return [remark for remarks in (*(each.remarks for each in translated), *of_metrics) for remark in remarks]


def check_baseline(translated: TranslatedText, baseline: str | None) -> None:
    """Refuse a baseline that is not one of the systems.

    Raises:
        EvalError: If it is not one of them.
    """
    if baseline is not None and baseline not in translated.names:
        names = ", ".join(translated.names)
        raise EvalError(f"`baseline` must be one of {names}, but is {baseline!r}.")


def compare_measurements(
    translated: TranslatedText,
    measurements: Sequence[Measurement],
    config: CompareConfig,
    *,
    baseline: str | None = None,
) -> TextComparison:
    """Compare systems by their statistics; for the arguments see `compare_systems`.

    Raises:
        EvalError: If sentences cannot be grouped as requested.
    """
    text, names = translated.text, translated.names
    baseline = (baseline or names[0]) if len(names) > 1 else None
    groups = None if config.grouping is None else group_sentences(text, config.grouping)
    metrics = tuple(_compare(each, config, baseline, groups, text.documents) for each in measurements)
    return TextComparison(
        testset=text.testset,
        task=text.task,
        sentences=len(text),
        documents=len(set(text.documents)),
        baseline=baseline,
        config=config,
        searches=translated.searches,
        metrics=metrics,
        agreements=agreements(measurements, [each.resampled for each in metrics], config, text.documents),
    )


def estimate(interval: ConfidenceInterval) -> dict[str, float]:
    """Return the fields of an `Estimate`."""
    return {"value": interval.value, "lower": interval.lower, "upper": interval.upper}


def group_by_value(values: Mapping[str, str]) -> dict[str, list[str]]:
    """Return {value: the names that have it}."""
    groups: dict[str, list[str]] = {}
    for name, value in values.items():
        groups.setdefault(value, []).append(name)
    return groups


def _compare(
    measurement: Measurement,
    config: CompareConfig,
    baseline: str | None,
    groups: Sequence[str] | None,
    documents: Sequence[str],
) -> MetricComparison:
    metric, systems = measurement.metric, measurement.systems
    tests = PairTests(measurement, config, documents)
    pairs = tests.all_pairs(baseline)
    ranks = _rank(tests.intervals, pairs, higher_is_better=metric.higher_is_better)
    against = {pair.second: pair.result for pair in pairs if pair.first == baseline}
    counts = {name: count_sentences(metric, systems[str(baseline)], systems[name]) for name in against}
    by_group = {} if groups is None else _compare_groups(measurement, config, baseline, groups, documents)
    scores = [
        SystemScore(
            system=name,
            **estimate(interval),
            rank=ranks[name],
            against_baseline=against.get(name),
            sentences=counts.get(name),
            groups=by_group.get(name, ()),
        )
        for name, interval in tests.intervals.items()
    ]
    return MetricComparison(
        metric=metric.name,
        signature=metric.signature,
        higher_is_better=metric.higher_is_better,
        decimals=metric.decimals,
        scores=tuple(scores),
        pairs=pairs,
        remarks=tuple(
            f"{', '.join(names)}: {remark}"
            for remark, names in group_by_value(
                {name: metric.remark(systems[name]) for name in systems}
            ).items()
            if remark
        ),
        resampled=tests.resampled,
        differences={name: tests.differences(str(baseline), name) for name in against},
    )


def _rank(
    intervals: Mapping[str, ConfidenceInterval], pairs: Sequence[SystemPair], *, higher_is_better: bool
) -> dict[str, Rank]:
    values = {name: interval.value for name, interval in intervals.items()}
    differing = {pair.names for pair in pairs if pair.result.p_value < SIGNIFICANT}
    return rank_systems(values, differing, higher_is_better=higher_is_better)


def _compare_groups(
    measurement: Measurement,
    config: CompareConfig,
    baseline: str | None,
    groups: Sequence[str],
    documents: Sequence[str],
) -> dict[str, tuple[GroupScore, ...]]:
    """Return {system: its scores of each group}; the tests of all groups are corrected together.

    A group of which no sentence has a score is left out.
    """
    first = next(iter(measurement.systems.values()))
    tests = {
        group: PairTests(measurement, config, documents, rows)
        for group, rows in group_rows(groups).items()
        if not np.isnan(measurement.metric.values(first[rows].sum(axis=0)))
    }
    tested = [
        (group, name) for group in tests for name in measurement.systems if baseline not in (None, name)
    ]
    results = correct([tests[group].test(str(baseline), name) for group, name in tested])
    against = dict(zip(tested, results, strict=True))
    return {
        name: tuple(
            _score_group(group, groups.count(group), in_group.intervals[name], against.get((group, name)))
            for group, in_group in tests.items()
        )
        for name in measurement.systems
    }


def _score_group(
    group: str, sentences: int, interval: ConfidenceInterval, against: CorrectedTest | None
) -> GroupScore:
    return GroupScore(
        group=group,
        sentences=sentences,
        **estimate(interval),
        against_baseline=against,
    )
