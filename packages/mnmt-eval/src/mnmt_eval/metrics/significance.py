"""Paired tests of whether two systems differ by more than chance, on the same sentences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mnmt_eval.metrics.metric import Floats, Metric
from mnmt_eval.metrics.resampling import (
    BOOTSTRAP_SAMPLES,
    SEED,
    ConfidenceInterval,
    bootstrap_totals,
    interval_of,
    permutation_totals,
    resampled_signature,
)

PERMUTATION_SAMPLES = 10_000
"""The default number of random exchanges, as in sacreBLEU."""


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
    baseline_totals, system_totals = bootstrap_totals([baseline, system], samples=samples, seed=seed)
    differences = metric.values(system_totals) - metric.values(baseline_totals)
    sizes = np.abs(differences)
    signature = resampled_signature(metric.signature, bs=samples, seed=seed)
    return _test(metric, baseline, system, sizes - sizes.mean(), signature, differences)


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
    first, second = permutation_totals(baseline, system, samples=samples, seed=seed)
    sizes = np.abs(metric.values(first) - metric.values(second))
    return _test(
        metric, baseline, system, sizes, resampled_signature(metric.signature, ar=samples, seed=seed)
    )


def _test(
    metric: Metric,
    baseline: Floats,
    system: Floats,
    by_chance: Floats,
    signature: str,
    differences: Floats | None = None,
) -> PairedTest:
    """Return the test whose statistic is `by_chance`, (samples,), if the systems are equally good."""
    baseline_value, system_value = metric.corpus(baseline).value, metric.corpus(system).value
    # Compared with what `values` gives, as `by_chance` is, so that ties are ties.
    observed = np.abs(np.subtract(*metric.values(np.stack([baseline.sum(axis=0), system.sum(axis=0)]))))
    interval = None
    if differences is not None:
        interval = interval_of(differences, value=system_value - baseline_value, signature=signature)
    return PairedTest(
        baseline=baseline_value,
        system=system_value,
        p_value=_p_value(by_chance, float(observed)),
        interval=interval,
        signature=signature,
    )


def _p_value(by_chance: Floats, observed: float) -> float:
    if observed == 0:
        return 1.0
    return float((np.sum(by_chance > observed) + 1) / (len(by_chance) + 1))
