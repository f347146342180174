"""How far metrics order systems, and translations of a sentence, as people do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mnmt_eval.compare.config import CompareConfig
from mnmt_eval.compare.measurements import Measurement
from mnmt_eval.errors import EvalError
from mnmt_eval.metrics.protocol import Floats
from mnmt_eval.metrics.resampling import ConfidenceInterval, bootstrap_totals, interval_of, sum_documents


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """The pairwise accuracy of a metric: the share of pairs that it orders as people do, in percent.

    Pairs that people do not part are left out; those that only the metric does not part count half. Without
    such ties the accuracy of sentences is (1 + Kendall's τ) / 2. Intervals are of resampled systems and
    sentences, or documents, at once.
    """

    metric: str
    system_pairs: int
    systems: ConfidenceInterval
    """Of pairs of systems by their values (Kocmi et al. 2021)."""
    sentence_pairs: int
    sentences: ConfidenceInterval
    """Of pairs of translations of one sentence."""


def agreements(
    measurements: Sequence[Measurement],
    resampled: Sequence[Mapping[str, Floats]],
    config: CompareConfig,
    documents: Sequence[str] = (),
) -> tuple[Agreement, ...]:
    """Return the agreement of each metric with the one that `config.human` names; none if it names none.

    Args:
        measurements: All metrics' statistics.
        resampled: For each metric {system: its values on the shared resamples, (samples,)}.
        config: The options.
        documents: The document of each sentence; empty if sentences are resampled one by one.

    Raises:
        EvalError: If there is only one system, or people part no two.
    """
    if config.human is None:
        return ()
    place = config.names.index(config.human)
    human = _gaps(measurements[place], resampled[place])
    if not all(np.nan_to_num(gaps).any() for gaps in (human[0], human[2])):
        raise EvalError(f"`human` must part some systems, but {config.human} parts none.")
    size = len(measurements[place].systems)
    counts = np.random.default_rng(config.seed).multinomial(size, [1 / size] * size, config.samples)
    first, second = np.triu_indices(size, 1)
    weights = (counts[:, first] * counts[:, second]).astype(np.float64)
    return tuple(
        _agreement(each.metric.name, _gaps(each, values), human, weights, config, documents)
        for number, (each, values) in enumerate(zip(measurements, resampled, strict=True))
        if number != place
    )


Gaps = tuple[Floats, Floats, Floats]
"""The gains of one system over another, of each pair: (1, pairs), (samples, pairs), (sentences, pairs)."""


def _gaps(measurement: Measurement, resampled: Mapping[str, Floats]) -> Gaps:
    metric, systems = measurement.metric, measurement.systems.values()
    sign = 1.0 if metric.higher_is_better else -1.0
    first, second = np.triu_indices(len(systems), 1)

    def gaps(values: Iterable[Floats]) -> Floats:
        columns = np.stack([*values], axis=1)
        return sign * (columns[:, first] - columns[:, second])

    return (
        gaps(np.array([metric.corpus(each).value]) for each in systems),
        gaps(resampled[name] for name in measurement.systems),
        gaps(map(metric.sentence_scores, systems)),
    )


def _agreement(
    name: str, metric: Gaps, human: Gaps, weights: Floats, config: CompareConfig, documents: Sequence[str]
) -> Agreement:
    (value, resampled, sentences) = (_counts(*each) for each in zip(metric, human, strict=True))
    rows = [sum_documents(each, documents) if documents else each for each in sentences]
    of_draws = bootstrap_totals(rows, samples=config.samples, seed=config.seed)
    return Agreement(
        metric=name,
        system_pairs=int(value[1].sum()),
        systems=_interval(value, resampled, weights),
        sentence_pairs=int(sentences[1].sum()),
        sentences=_interval(sentences, of_draws, weights),
    )


def _counts(metric: Floats, human: Floats) -> tuple[Floats, Floats]:
    """Return how far each pair is ordered alike, 0, ½ or 1, and whether it counts; nan never does."""
    counts = (human != 0) & ~np.isnan(human) & ~np.isnan(metric)
    alike = np.where(counts, (1 + np.sign(np.nan_to_num(metric)) * np.sign(np.nan_to_num(human))) / 2, 0.0)
    return alike, counts.astype(np.float64)


def _interval(
    observed: tuple[Floats, Floats], resampled: Sequence[Floats], weights: Floats
) -> ConfidenceInterval:
    """Return the share in percent; resamples with no two systems that people part are left out."""
    alike, counted = ((weights * each).sum(axis=1) for each in resampled)
    shares = 100 * alike[counted > 0] / counted[counted > 0]
    value = 100 * float(observed[0].sum() / max(observed[1].sum(), 1))
    return interval_of(shares if len(shares) else np.array([value]), value=value, signature="")
