"""The paired test of whether systems differ by more than chance, on the same sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import fsum

import numpy as np

from mnmt_eval.metrics.config import PERMUTATION_SAMPLES, SEED
from mnmt_eval.metrics.exchanges import every_exchange
from mnmt_eval.metrics.protocol import Floats, Metric
from mnmt_eval.metrics.resampling import check_systems, exchange_totals, resampled_signature

_OF_DIFFERENCE, _OF_VALUES = 1e-9, 1e-12
"""Differences that are closer than these shares of the difference and of the values count as equal."""


@dataclass(frozen=True, kw_only=True)
class PairedTest:
    """The result of testing a system against a baseline."""

    baseline: float
    system: float
    p_value: float
    """The probability of so large a difference or a larger one, either way, if neither system were better."""
    signature: str
    """The metric's signature, with number and seed of random exchanges unless all were made."""

    @property
    def difference(self) -> float:
        """The system's value less the baseline's."""
        return self.system - self.baseline


@dataclass(frozen=True, kw_only=True, eq=False)
class Differences:
    """The difference of two systems, and those after exchanges of their outputs."""

    observed: float
    """The difference on the sentences themselves."""
    by_chance: Floats
    """The difference after each exchange, (exchanges,)."""
    scale: float
    """The larger of the two values, to which errors of rounding are in proportion."""
    weights: Floats | None = None
    """The probability of each exchange, (exchanges,), if these are all; None of random ones."""

    @property
    def p_value(self) -> float:
        """The share of exchanges whose difference is at least as large; see `paired_permutation`.

        Equal ones count, though rounding makes them differ: an exchange that changes nothing is as large.
        """
        if abs(self.observed) <= self._rounding:
            return 1.0
        as_large = np.abs(self.by_chance) >= abs(self.observed) - self._rounding
        if self.weights is None:
            return float((as_large.sum() + 1) / (len(as_large) + 1))
        return min(1.0, fsum(self.weights[as_large]))

    @property
    def _rounding(self) -> float:
        return _OF_DIFFERENCE * abs(self.observed) + _OF_VALUES * self.scale


def mean_differences(of_texts: Sequence[Differences]) -> Differences:
    """Return the mean of differences on several texts, exchange by exchange."""
    return Differences(
        observed=float(np.mean([each.observed for each in of_texts])),
        by_chance=np.asarray(np.mean([each.by_chance for each in of_texts], axis=0)),
        scale=float(np.mean([each.scale for each in of_texts])),
    )


def paired_permutation(
    metric: Metric, baseline: Floats, system: Floats, *, samples: int = PERMUTATION_SAMPLES, seed: int = SEED
) -> PairedTest:
    """Test by exchanging the two systems' outputs of sentences (Riezler and Maxwell 2005), two-sided.

    The p-value is the share of exchanges whose difference is at least as large as the observed one: of all
    exchanges if at most 16 sentences differ, or more in few ways; else of random ones, as
    p = (1 + #{abs(d_i) ≥ abs(d)}) / (1 + samples). So at most 5% of equally good systems have p < 0.05.
    `sacrebleu --paired-ar` makes the same random exchanges, but counts > in place of ≥, and so takes systems
    that hardly differ for different.

    Args:
        metric: The metric.
        baseline: The statistics of one system, (sentences, k).
        system: The statistics of the other on the same sentences, (sentences, k).
        samples: The number of random exchanges.
        seed: Their seed.

    Raises:
        EvalError: If the two are not of the same sentences, or `samples` is not positive.
    """
    return PermutationTests(metric, [baseline, system], samples=samples, seed=seed).test(0, 1)


class PermutationTests:
    """`paired_permutation` of any two of several systems, which all exchange the same sentences."""

    def __init__(
        self, metric: Metric, systems: Sequence[Floats], *, samples: int, seed: int, unit: str = ""
    ) -> None:
        """Take the systems' statistics, (sentences, k) each; for the rest see `paired_permutation`.

        Each row may be the sum of a larger `unit`, which the signature then names; see `sum_documents`.
        """
        check_systems(systems, samples)
        self._unit = {"unit": unit} if unit else {}
        self._metric, self._systems, self._samples, self._seed = metric, systems, samples, seed

    def test(self, baseline: int, system: int) -> PairedTest:
        """Test the systems in two places."""
        exact = self._all_differences(baseline, system)
        differences = exact or self.differences(baseline, system)
        settings = {"ar": "exact"} if exact else {"ar": str(self._samples), "seed": str(self._seed)}
        return PairedTest(
            baseline=self._corpus[baseline],
            system=self._corpus[system],
            p_value=differences.p_value,
            signature=resampled_signature(self._metric.signature, **settings, **self._unit),
        )

    def differences(self, baseline: int, system: int) -> Differences:
        """Return the difference of the systems in two places, and that of each random exchange."""
        stays, other_stays = self._stays[baseline], self._stays[system]
        first = stays + (self._systems[system].sum(axis=0) - other_stays)
        second = other_stays + (self._systems[baseline].sum(axis=0) - stays)
        by_chance = self._metric.values(second) - self._metric.values(first)
        return self._compare(baseline, system, by_chance)

    def _all_differences(self, baseline: int, system: int) -> Differences | None:
        """Return the difference of the systems in two places, and that of every exchange unless too many."""
        exchanges = every_exchange(self._systems[baseline], self._systems[system])
        if exchanges is None:
            return None
        by_chance = self._metric.values(exchanges.system) - self._metric.values(exchanges.baseline)
        return replace(self._compare(baseline, system, by_chance), weights=exchanges.weights)

    def _compare(self, baseline: int, system: int, by_chance: Floats) -> Differences:
        """Return the difference of the systems in two places beside those by chance."""
        # By `values`, like the differences of the exchanges, so that equal ones are exactly equal.
        totals = np.stack([self._systems[place].sum(axis=0) for place in (baseline, system)])
        first, second = self._metric.values(totals)
        scale = float(max(abs(first), abs(second)))
        return Differences(observed=float(second - first), by_chance=by_chance, scale=scale)

    @cached_property
    def _corpus(self) -> list[float]:
        """The value of each system."""
        return [self._metric.corpus(statistics).value for statistics in self._systems]

    @cached_property
    def _stays(self) -> list[Floats]:
        """The sums over the sentences that each system does not exchange, (samples, k)."""
        return exchange_totals(self._systems, samples=self._samples, seed=self._seed)


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
