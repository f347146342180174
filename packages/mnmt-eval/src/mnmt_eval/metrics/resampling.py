"""Resampled sentences: sums of their statistics, and confidence intervals by the bootstrap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mnmt_eval.errors import EvalError
from mnmt_eval.metrics.config import BOOTSTRAP_SAMPLES, SEED
from mnmt_eval.metrics.protocol import Floats, Metric

_CHUNK_DRAWS = 2**20
# A multiple of 32 bits, so that chunks draw the same numbers as a single call.
_CHUNK_SAMPLES = 32


@dataclass(frozen=True, kw_only=True)
class ConfidenceInterval:
    """A value with the 95% interval around the mean of its resamples."""

    value: float
    """The value on the sentences themselves."""
    mean: float
    lower: float
    """The lower end; 2.5% of the resamples are below."""
    upper: float
    """The upper end; 2.5% of the resamples are above."""
    signature: str
    """The metric's signature, with number and seed of the resamples."""

    @property
    def half_width(self) -> float:
        """Half of the interval; sacreBLEU prints `μ = mean ± half_width`."""
        return (self.upper - self.lower) / 2


def bootstrap(
    metric: Metric, statistics: Floats, *, samples: int = BOOTSTRAP_SAMPLES, seed: int = SEED
) -> ConfidenceInterval:
    """Compute how much a value depends on the choice of sentences in the test set (Koehn 2004).

    With the same seed `sacrebleu --confidence` draws the same resamples. It computes in single precision, so
    the two intervals agree to about six digits.

    Args:
        metric: The metric.
        statistics: The sentences' statistics, (sentences, k).
        samples: The number of resamples.
        seed: The seed of the draws.

    Raises:
        EvalError: If `samples` is not positive.
    """
    return BootstrapIntervals(metric, [statistics], samples=samples, seed=seed).value(0)


class BootstrapIntervals:
    """`bootstrap` of several systems, and of their differences; all are resampled once, and together."""

    def __init__(
        self,
        metric: Metric,
        systems: Sequence[Floats],
        *,
        samples: int = BOOTSTRAP_SAMPLES,
        seed: int = SEED,
        unit: str = "",
    ) -> None:
        """Take the systems' statistics, (sentences, k) each; for the rest see `bootstrap`.

        Each row may be the sum of a larger `unit`, which the signature then names; see `sum_documents`.
        """
        check_systems(systems, samples)
        self._metric, self._systems, self._samples, self._seed = metric, systems, samples, seed
        self._unit = {"unit": unit} if unit else {}

    def value(self, place: int) -> ConfidenceInterval:
        """Return the value of the system in a place with its interval."""
        return self._interval(self.values[place], self._corpus[place])

    def difference(self, baseline: int, system: int) -> ConfidenceInterval:
        """Return what the system in one place has more than that in another, with its interval."""
        resampled = self.values[system] - self.values[baseline]
        return self._interval(resampled, self._corpus[system] - self._corpus[baseline])

    @cached_property
    def values(self) -> list[Floats]:
        """The resampled values of each system, (samples,)."""
        totals = bootstrap_totals(self._systems, samples=self._samples, seed=self._seed)
        return [self._metric.values(each) for each in totals]

    @cached_property
    def _corpus(self) -> list[float]:
        """The value of each system."""
        return [self._metric.corpus(statistics).value for statistics in self._systems]

    def _interval(self, resampled: Floats, value: float) -> ConfidenceInterval:
        signature = resampled_signature(
            self._metric.signature, bs=self._samples, seed=self._seed, **self._unit
        )
        return interval_of(resampled, value=value, signature=signature)


def interval_of(resampled: Floats, *, value: float, signature: str) -> ConfidenceInterval:
    """Return the interval of all but the lowest and the highest 40th of the resampled values, (samples,)."""
    ordered = np.sort(resampled[~np.isnan(resampled)])
    outside = len(ordered) // 40
    return ConfidenceInterval(
        value=value,
        mean=float(ordered.mean()),
        lower=float(ordered[outside]),
        upper=float(ordered[-1 - outside]),
        signature=signature,
    )


def resampled_signature(metric: str, **settings: int | str) -> str:
    """Return a metric's signature with the resampling's settings after the references, as sacreBLEU does."""
    nrefs, *rest = metric.split("|")
    return "|".join([nrefs, *(f"{key}:{value}" for key, value in settings.items()), *rest])


def sum_documents(statistics: Floats, documents: Sequence[str]) -> Floats:
    """Sum the statistics of the sentences of each document, (documents, k).

    Values depend on sums only, so to draw or exchange these rows is to draw or exchange whole documents, of
    whatever lengths.

    Args:
        statistics: The statistics of each sentence, (sentences, k).
        documents: The document of each sentence.
    """
    names, places = np.unique(np.asarray(documents), return_inverse=True)
    sums = np.zeros((len(names), statistics.shape[1]))
    np.add.at(sums, places, statistics)
    return sums


def bootstrap_totals(systems: Sequence[Floats], *, samples: int, seed: int) -> list[Floats]:
    """Sum the statistics of resampled test sets, the same resamples for each system.

    A resample has the size of the test set, drawn with replacement as sacreBLEU draws it with this seed.

    Args:
        systems: The statistics of each system, (sentences, k).
        samples: The number of resamples.
        seed: The seed of the draws.

    Returns:
        The sums for each system, (samples, k).
    """
    statistics = np.hstack(systems)
    sentences = len(statistics)
    rng = np.random.default_rng(seed)
    totals = [
        _counts(rng.choice(sentences, size=(rows, sentences), replace=True)) @ statistics
        for rows in _chunks(samples, sentences)
    ]
    return np.split(np.concatenate(totals), len(systems), axis=1)


def exchange_totals(systems: Sequence[Floats], *, samples: int, seed: int) -> list[Floats]:
    """Sum each system's statistics over the sentences that it keeps; each is exchanged with probability ½.

    After an exchange a system has `its sum + (the other's sum over all sentences - the other's sum)`, so all
    pairs of systems share the draws. SacreBLEU draws the same with this seed.
    For arguments and sums see `bootstrap_totals`.
    """
    statistics = np.hstack(systems)
    sentences = len(statistics)
    rng = np.random.default_rng(seed)
    totals = [
        rng.integers(2, size=(rows, sentences), dtype=bool).astype(np.float64) @ statistics
        for rows in _chunks(samples, sentences)
    ]
    return np.split(np.concatenate(totals), len(systems), axis=1)


def check_systems(systems: Sequence[Floats], samples: int) -> None:
    """Refuse statistics of different sentences, or of none, and a number of samples that is not positive.

    Raises:
        EvalError: If they are not of the same sentences, or `samples` is not positive.
    """
    if samples < 1:
        raise EvalError(f"`samples` must be at least 1, but is {samples}.")
    shapes = {statistics.shape for statistics in systems}
    if len(shapes) > 1 or not len(systems[0]):
        counts = ", ".join(str(len(statistics)) for statistics in systems)
        raise EvalError(f"systems must be measured on the same sentences, but have {counts}.")


def _chunks(samples: int, sentences: int) -> Iterator[int]:
    """Yield the number of samples to draw at a time."""
    rows = max(_CHUNK_DRAWS // sentences // _CHUNK_SAMPLES, 1) * _CHUNK_SAMPLES
    for start in range(0, samples, rows):
        yield min(rows, samples - start)


def _counts(draws: NDArray[np.int64]) -> Floats:
    """Count the draws of each sentence, (samples, sentences)."""
    counts = np.empty(draws.shape)
    for row, draw in zip(counts, draws, strict=True):
        row[:] = np.bincount(draw, minlength=len(row))
    return counts
