"""The choice of a translation among candidates, by minimum Bayes risk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import fsum

from mnmt_eval.errors import EvalError
from mnmt_eval.metrics.protocol import Floats, Metric, ReferenceMetric


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The candidate chosen for a source."""

    text: str
    index: int
    """The candidate's place in the order given, from 0."""
    values: tuple[float, ...]
    """The expected value of the metric for each candidate."""

    @property
    def value(self) -> float:
        """The expected value of the metric for the chosen candidate."""
        return self.values[self.index]


def choose_by_risk(
    metric: Metric,
    candidates: Sequence[Sequence[str]],
    *,
    samples: Sequence[Sequence[str]] | None = None,
    sources: Sequence[str] = (),
) -> Iterator[Choice]:
    """Choose the candidate with the best expected value of a metric for each source; of equal ones the first.

    For the arguments and exceptions see `expected_scores`.
    """
    expected = expected_scores(metric, candidates, samples=samples, sources=sources)
    for texts, values in zip(candidates, expected, strict=True):
        yield _choose(texts, values, higher_is_better=metric.higher_is_better)


def expected_scores(
    metric: Metric,
    candidates: Sequence[Sequence[str]],
    *,
    samples: Sequence[Sequence[str]] | None = None,
    sources: Sequence[str] = (),
) -> Iterator[list[float]]:
    """Estimate the expected value of a metric for each candidate, were the reference drawn from the model.

    u(h) = 1/S · Σₛ metric(h, yₛ) over the S samples y of a source: the negative of the Bayes risk of Kumar
    and Byrne 2004, estimated from samples as Eikema and Aziz 2020 do. A sample that was drawn twice
    counts twice. The sum is exact, so the order of candidates and samples changes nothing.

    Args:
        metric: A metric that compares with one reference.
        candidates: The candidates for each source, at least one.
        samples: The samples of each source, at least one; by default the candidates themselves.
        sources: The source sentences, for metrics that look at them.

    Yields:
        The values of a source's candidates, in their order, on the metric's scale.

    Raises:
        EvalError: If the metric does not compare with references, or a source has no candidate or sample.
    """
    if not isinstance(metric, ReferenceMetric):
        raise EvalError(f"{metric.name}: does not compare with a reference, so it has no expected value.")
    references = candidates if samples is None else samples
    if len(references) != len(candidates):
        raise EvalError(
            f"must have samples of every source ({len(candidates)}), but has those of {len(references)}."
        )
    for what, groups in (("candidate", candidates), ("sample", references)):
        if not all(groups):
            number = [bool(group) for group in groups].index(False) + 1
            raise EvalError(f"source {number}: must have at least one {what}, but has none.")
    # Samples of a confident model are often the same: each pair of different texts is compared once.
    hypotheses = [list(dict.fromkeys(texts)) for texts in candidates]
    counts = [Counter(texts) for texts in references]
    pairs = metric.pairwise_statistics(hypotheses, [list(each) for each in counts], sources)
    for texts, hyps, weights, statistics in zip(candidates, hypotheses, counts, pairs, strict=True):
        means = _means(metric.sentence_scores(statistics), list(weights.values()))
        value_of = dict(zip(hyps, means, strict=True))
        yield [value_of[text] for text in texts]


def _means(scores: Floats, weights: Sequence[int]) -> list[float]:
    """Return the weighted mean of each row, the same in any order of its entries."""
    total = sum(weights)
    # A product may be rounded, but the same one wherever it stands in the sum.
    return [fsum((row * weights).tolist()) / total for row in scores]


def _choose(texts: Sequence[str], values: Sequence[float], *, higher_is_better: bool) -> Choice:
    best = max(values) if higher_is_better else min(values)
    index = values.index(best)
    return Choice(text=texts[index], index=index, values=tuple(values))
