"""Paired tests of whether systems differ by more than chance, on the same sentences."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mnmt_eval.metrics.config import BOOTSTRAP_SAMPLES, PERMUTATION_SAMPLES, SEED
from mnmt_eval.metrics.protocol import Floats, Metric
from mnmt_eval.metrics.resampling import (
    ConfidenceInterval,
    bootstrap_totals,
    exchange_totals,
    interval_of,
    resampled_signature,
)


@dataclass(frozen=True, kw_only=True)
class PairedTest:
    """The result of testing a system against a baseline."""

    baseline: float
    system: float
    p_value: float
    """The probability of so large a difference, in either direction, if the systems were equally good.

    As in sacreBLEU; but without any difference it is 1, where sacreBLEU gives 1 / (samples + 1).
    """
    interval: ConfidenceInterval | None
    """The interval of the difference system − baseline; None if the test does not resample sentences."""
    signature: str
    """The metric's signature, with number and seed of the samples."""

    @property
    def difference(self) -> float:
        """The system's value less the baseline's."""
        return self.system - self.baseline


def paired_bootstrap(
    metric: Metric, baseline: Floats, system: Floats, *, samples: int = BOOTSTRAP_SAMPLES, seed: int = SEED
) -> PairedTest:
    """Test by paired bootstrap resampling (Koehn 2004), two-sided, as `sacrebleu --paired-bs` does.

    p = (1 + #{abs(d_i) − m > abs(d)}) / (1 + samples), d being the difference on all sentences, d_i that on
    the i-th resample and m the mean of all abs(d_i). With the same seed the p-value is sacreBLEU's.

    Args:
        metric: The metric.
        baseline: The statistics of one system, (sentences, k).
        system: The statistics of the other on the same sentences, (sentences, k).
        samples: The number of resamples.
        seed: The seed of the draws.

    Raises:
        EvalError: If the two are not of the same sentences, or `samples` is not positive.
    """
    return BootstrapTests(metric, [baseline, system], samples=samples, seed=seed).test(0, 1)


def paired_permutation(
    metric: Metric, baseline: Floats, system: Floats, *, samples: int = PERMUTATION_SAMPLES, seed: int = SEED
) -> PairedTest:
    """Test by approximate randomisation (Riezler and Maxwell 2005), two-sided: `sacrebleu --paired-ar`.

    p = (1 + #{abs(d_i) > abs(d)}) / (1 + samples), d being the difference and d_i that after the i-th random
    exchange of the two systems' outputs. With the same seed the p-value is sacreBLEU's.

    Args:
        metric: The metric.
        baseline: The statistics of one system, (sentences, k).
        system: The statistics of the other on the same sentences, (sentences, k).
        samples: The number of random exchanges.
        seed: The seed of the draws.

    Raises:
        EvalError: If the two are not of the same sentences, or `samples` is not positive.
    """
    return PermutationTests(metric, [baseline, system], samples=samples, seed=seed).test(0, 1)


class _PairedTests(ABC):
    """Tests of any two of several systems on the same sentences, which draw and score each system once."""

    def __init__(self, metric: Metric, systems: Sequence[Floats], *, samples: int, seed: int) -> None:
        """Take the systems' statistics, (sentences, k) each, and the number and seed of the draws."""
        self._metric, self._systems, self._samples, self._seed = metric, systems, samples, seed
        self._differences: dict[tuple[int, int], Floats] = {}

    def differences(self, baseline: int, system: int) -> Floats:
        """Return the difference of the systems in two places, and that of each draw, (1 + samples,)."""
        places = baseline, system
        if places not in self._differences:
            # By `values`, like the differences of the draws, so that equal ones are exactly equal.
            totals = np.stack([self._systems[place].sum(axis=0) for place in places])
            first, second = self._metric.values(totals)
            self._differences[places] = np.append(second - first, self._draw(baseline, system))
        return self._differences[places]

    @abstractmethod
    def _draw(self, baseline: int, system: int) -> Floats:
        """Return the difference of each draw, (samples,)."""

    @cached_property
    def _corpus(self) -> list[float]:
        """The value of each system."""
        return [self._metric.corpus(statistics).value for statistics in self._systems]


class BootstrapTests(_PairedTests):
    """`paired_bootstrap` of any two of several systems, which are all resampled once."""

    def value(self, place: int) -> ConfidenceInterval:
        """Return the value of the system in a place with its interval, as `bootstrap` does."""
        return interval_of(self.values[place], value=self._corpus[place], signature=self._signature)

    def test(self, baseline: int, system: int) -> PairedTest:
        """Test the systems in two places."""
        differences, signature = self.differences(baseline, system), self._signature
        one, other = self._corpus[baseline], self._corpus[system]
        return PairedTest(
            baseline=one,
            system=other,
            p_value=bootstrap_p_value(differences),
            interval=interval_of(differences[1:], value=other - one, signature=signature),
            signature=signature,
        )

    @cached_property
    def values(self) -> list[Floats]:
        """The resampled values of each system, (samples,)."""
        totals = bootstrap_totals(self._systems, samples=self._samples, seed=self._seed)
        return [self._metric.values(each) for each in totals]

    def _draw(self, baseline: int, system: int) -> Floats:
        return self.values[system] - self.values[baseline]

    @property
    def _signature(self) -> str:
        return resampled_signature(self._metric.signature, bs=self._samples, seed=self._seed)


class PermutationTests(_PairedTests):
    """`paired_permutation` of any two of several systems, which all exchange the same sentences."""

    def test(self, baseline: int, system: int) -> PairedTest:
        """Test the systems in two places."""
        p_value = permutation_p_value(self.differences(baseline, system))
        return PairedTest(
            baseline=self._corpus[baseline],
            system=self._corpus[system],
            p_value=p_value,
            interval=None,
            signature=resampled_signature(self._metric.signature, ar=self._samples, seed=self._seed),
        )

    def _draw(self, baseline: int, system: int) -> Floats:
        stays, other_stays = self._stays[baseline], self._stays[system]
        first = stays + (self._systems[system].sum(axis=0) - other_stays)
        second = other_stays + (self._systems[baseline].sum(axis=0) - stays)
        return self._metric.values(second) - self._metric.values(first)

    @cached_property
    def _stays(self) -> list[Floats]:
        """The sums over the sentences that each system does not exchange, (samples, k)."""
        return exchange_totals(self._systems, samples=self._samples, seed=self._seed)


def bootstrap_p_value(differences: Floats) -> float:
    """Return the p-value of `paired_bootstrap` from a difference and those on resamples, (1 + samples,)."""
    sizes = np.abs(differences)
    return _p_value(sizes[1:] - sizes[1:].mean(), float(sizes[0]))


def permutation_p_value(differences: Floats) -> float:
    """Return the p-value of `paired_permutation` from a difference and those of exchanges, (1 + samples,)."""
    sizes = np.abs(differences)
    return _p_value(sizes[1:], float(sizes[0]))


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for the number of tests (Holm 1979).

    The i-th smallest of m becomes max over j ≤ i of min(1, (m − j + 1) p_j). With a threshold of 0.05 the
    probability of any false positive is at most 5%, however the tests depend on each other.
    """
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    factors = np.arange(len(values), 0, -1)
    corrected = np.empty_like(values)
    corrected[order] = np.minimum(np.maximum.accumulate(values[order] * factors), 1.0)
    return [float(value) for value in corrected]


def _p_value(by_chance: Floats, observed: float) -> float:
    if observed == 0:
        return 1.0
    return float((np.sum(by_chance > observed) + 1) / (len(by_chance) + 1))
