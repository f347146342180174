"""Confidence intervals by bootstrap resampling."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mnmt_eval.metrics.metric import Floats, Metric
from mnmt_eval.metrics.resampling import bootstrap_totals
from mnmt_eval.metrics.signature import resampled_signature

BOOTSTRAP_SAMPLES = 1000
"""Resamples, unless said otherwise; as in sacreBLEU."""

SEED = 12345
"""sacreBLEU's."""


@dataclass(frozen=True, kw_only=True)
class ConfidenceInterval:
    """A value with the 95% interval around the mean of its resamples."""

    value: float
    """On the sentences themselves."""

    mean: float
    """Over the resamples."""

    lower: float
    """2.5% of the resamples are below."""

    upper: float
    """2.5% of the resamples are above."""

    signature: str
    """The metric's, with number and seed of the resamples."""

    @property
    def half_width(self) -> float:
        """What sacreBLEU prints as `μ = mean ± half_width`."""
        return (self.upper - self.lower) / 2


def bootstrap(
    metric: Metric, statistics: Floats, *, samples: int = BOOTSTRAP_SAMPLES, seed: int = SEED
) -> ConfidenceInterval:
    """How much a value depends on which sentences happen to be in the test set (Koehn 2004).

    With the same seed the resamples are those of `sacrebleu --confidence`, which goes on in single precision:
    the two intervals agree to about six digits.

    Args:
        metric: The metric.
        statistics: Of the sentences, (sentences, k).
        samples: Resamples.
        seed: Of the draws.

    Raises:
        EvalError: If `samples` is not positive.
    """
    (totals,) = bootstrap_totals([statistics], samples=samples, seed=seed)
    signature = resampled_signature(metric.signature, bs=samples, seed=seed)
    return interval_of(metric.values(totals), value=metric.corpus(statistics).value, signature=signature)


def interval_of(resampled: Floats, *, value: float, signature: str) -> ConfidenceInterval:
    """The interval that holds all but the lowest and the highest 40th of the resampled values, (samples,)."""
    ordered = np.sort(resampled)
    beyond = len(ordered) // 40
    return ConfidenceInterval(
        value=value,
        mean=float(ordered.mean()),
        lower=float(ordered[beyond]),
        upper=float(ordered[-1 - beyond]),
        signature=signature,
    )
