"""Tests of pairs of systems on one metric, from draws that all pairs share, corrected for their number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from mnmt_eval.compare.config import CompareConfig
from mnmt_eval.compare.measurements import Measurement
from mnmt_eval.metrics.protocol import Floats, Metric
from mnmt_eval.metrics.resampling import BootstrapIntervals, ConfidenceInterval, sum_documents
from mnmt_eval.metrics.significance import Differences, PairedTest, PermutationTests, holm


@dataclass(frozen=True, kw_only=True)
class CorrectedTest:
    """A paired test that is one of several."""

    test: PairedTest
    interval: ConfidenceInterval
    """The difference with its bootstrap interval."""
    p_value: float
    """The test's p-value after Holm's correction for the number of tests."""


@dataclass(frozen=True, kw_only=True)
class SystemPair:
    """The test of one pair of systems, of all pairs on one metric."""

    first: str
    second: str
    result: CorrectedTest
    """The test of `second` against `first`, corrected for all pairs."""

    @property
    def names(self) -> frozenset[str]:
        """The two systems."""
        return frozenset((self.first, self.second))


@dataclass(frozen=True, kw_only=True)
class SentenceCounts:
    """The numbers of sentences on which a system is better than, as good as, and worse than another."""

    wins: int
    ties: int
    losses: int


class PairTests:
    """Intervals and tests of several systems on the same sentences, by one metric.

    Attributes:
        intervals: {system: its value with its 95% bootstrap interval}.
        resampled: {system: its values on the bootstrap's resamples, (samples,)}.
    """

    def __init__(
        self,
        measurement: Measurement,
        config: CompareConfig,
        documents: Sequence[str] = (),
        rows: NDArray[np.bool_] | slice = slice(None),
    ) -> None:
        """Take the statistics of all sentences, or only of some `rows`, perhaps document by document."""
        metric, statistics = measurement.metric, [each[rows] for each in measurement.systems.values()]
        unit = "document" if documents else ""
        if documents:
            of_rows = np.asarray(documents)[rows].tolist()
            statistics = [sum_documents(each, of_rows) for each in statistics]
        self._places = {name: place for place, name in enumerate(measurement.systems)}
        self._bootstrap = BootstrapIntervals(
            metric, statistics, samples=config.samples, seed=config.seed, unit=unit
        )
        self.intervals = {name: self._bootstrap.value(place) for name, place in self._places.items()}
        self.resampled = dict(zip(self._places, self._bootstrap.values, strict=True))
        self._permutation = PermutationTests(
            metric, statistics, samples=config.permutations, seed=config.seed, unit=unit
        )

    def test(self, baseline: str, name: str) -> tuple[PairedTest, ConfidenceInterval]:
        """Test a system against a baseline; return the bootstrap interval of the difference, too."""
        places = self._places[baseline], self._places[name]
        return self._permutation.test(*places), self._bootstrap.difference(*places)

    def differences(self, baseline: str, name: str) -> Differences:
        """Return the difference from a baseline, and that of each random exchange."""
        return self._permutation.differences(self._places[baseline], self._places[name])

    def all_pairs(self, baseline: str | None = None) -> tuple[SystemPair, ...]:
        """Test every pair of systems, in their order, but the baseline before all others."""
        pairs = list(combinations(sorted(self._places, key=lambda name: name != baseline), 2))
        results = correct([self.test(*pair) for pair in pairs])
        return tuple(
            SystemPair(first=first, second=second, result=result)
            for (first, second), result in zip(pairs, results, strict=True)
        )


def correct(tests: Sequence[tuple[PairedTest, ConfidenceInterval]]) -> list[CorrectedTest]:
    """Correct tests, each with the interval of its difference, for their number by Holm's procedure."""
    corrected = holm([test.p_value for test, _ in tests])
    return [
        CorrectedTest(test=test, interval=interval, p_value=p)
        for (test, interval), p in zip(tests, corrected, strict=True)
    ]


def count_sentences(metric: Metric, baseline: Floats, system: Floats) -> SentenceCounts:
    """Count the sentences on which a system is better than the baseline, as good, and worse."""
    gains = metric.sentence_scores(system) - metric.sentence_scores(baseline)
    signs = np.sign(gains if metric.higher_is_better else -gains)
    return SentenceCounts(
        wins=int((signs > 0).sum()), ties=int((signs == 0).sum()), losses=int((signs < 0).sum())
    )
