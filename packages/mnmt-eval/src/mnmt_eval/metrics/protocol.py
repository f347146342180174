"""The protocol of metrics, their scores, signatures and scales."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mnmt_eval.errors import EvalError

Floats: TypeAlias = NDArray[np.float64]

_FOUR_DECIMALS = ("bleurt", "loss")
_LOWER_IS_BETTER = ("ter", "loss")
_MAX_LISTED = 5
"""The number of lines that a message lists."""


@dataclass(frozen=True, kw_only=True)
class Score:
    """The value of a metric on a corpus, with everything that makes it reproducible."""

    name: str
    """The metric's name, such as `chrf++`."""
    value: float
    """The value: from 0 to 100, except for `bleurt` and `loss`; `ter` may exceed 100."""
    signature: str


class Metric(Protocol):
    """A metric of a corpus that depends on its sentences only through sums over them.

    The statistics of the sentences are computed once; the value of the corpus, of any part of it and of any
    resample of it is then a function of their sum.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The metric's name in the registry."""

    @property
    @abstractmethod
    def signature(self) -> str:
        """Everything that is needed to compute the same value again: `nrefs:1|…`."""

    @property
    def higher_is_better(self) -> bool:
        """Whether a better translation has a higher value."""
        return higher_is_better(self.name)

    @property
    def decimals(self) -> int:
        """The number of decimals of its values that are worth reading."""
        return decimals(self.name)

    @abstractmethod
    def sentence_statistics(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str] = ()
    ) -> Floats:
        """Return the statistics of each sentence, (sentences, k).

        Args:
            hypotheses: A system's output.
            references: The sentences of the first reference, those of the second, …
            sources: The source sentences, for metrics that look at them.

        Raises:
            EvalError: If these do not belong together.
        """

    def system_statistics(
        self,
        systems: Sequence[Sequence[str]],
        references: Sequence[Sequence[str]],
        sources: Sequence[str] = (),
    ) -> list[Floats]:
        """Return the statistics of each of several systems' outputs; see `sentence_statistics`."""
        return [self.sentence_statistics(hypotheses, references, sources) for hypotheses in systems]

    @abstractmethod
    def values(self, totals: Floats) -> Floats:
        """Return the values of corpora whose statistics sum to `totals`, (…, k); of shape (…)."""

    def sentence_scores(self, statistics: Floats) -> Floats:
        """Return the value of each sentence as if it were a corpus, (sentences,)."""
        return self.values(statistics)

    def corpus(self, statistics: Floats) -> Score:
        """Return the value of the corpus whose sentences have these statistics, (sentences, k)."""
        return self._score(float(self.values(statistics.sum(axis=0))))

    def remark(self, statistics: Floats) -> str:
        """Return why the value of a corpus misleads; empty if nothing is known against it."""
        return ""

    def score(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str] = ()
    ) -> Score:
        """Return the value of a system's output; for the arguments see `sentence_statistics`."""
        return self.corpus(self.sentence_statistics(hypotheses, references, sources))

    def _score(self, value: float) -> Score:
        return Score(name=self.name, value=value, signature=self.signature)


class ReferenceMetric(Metric):
    """A metric that compares a hypothesis with references, or with other hypotheses in their place."""

    def __init__(self, *, num_references: int) -> None:
        self._num_references = num_references

    @abstractmethod
    def _statistics(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str]
    ) -> Floats:
        """Return the statistics of sentences that belong together; see `sentence_statistics`."""

    def sentence_statistics(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str] = ()
    ) -> Floats:
        """Return the statistics of each sentence; see `Metric`."""
        check_alignment(self.name, hypotheses, references, sources, num_references=self._num_references)
        return self._statistics(hypotheses, references, sources)

    def pairwise_statistics(
        self,
        hypotheses: Sequence[Sequence[str]],
        references: Sequence[Sequence[str]],
        sources: Sequence[str] = (),
    ) -> Iterator[Floats]:
        """Compare every hypothesis of a source with every reference, one at a time; any may be blank.

        Args:
            hypotheses: The hypotheses of each source.
            references: The references of each source; their numbers may differ.
            sources: The source sentences, for metrics that look at them.

        Yields:
            The statistics of each source's pairs, (hypotheses, references, k).
        """
        groups = list(zip(hypotheses, references, sources or repeat(""), strict=False))
        pairs = [(hyp, ref, src) for hyps, refs, src in groups for hyp in hyps for ref in refs]
        if not pairs:
            return
        hyps_of_pairs, refs_of_pairs, srcs_of_pairs = map(list, zip(*pairs, strict=True))
        statistics = self._statistics(hyps_of_pairs, [refs_of_pairs], srcs_of_pairs if sources else [])
        start = 0
        for hyps, refs, _ in groups:
            end = start + len(hyps) * len(refs)
            yield statistics[start:end].reshape(len(hyps), len(refs), -1)
            start = end


class MeanMetric(ReferenceMetric):
    """The mean over sentences of a score.

    Statistics: the score, and 1.
    """

    @abstractmethod
    def _scores(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str]
    ) -> Sequence[float]:
        """Return a score for each sentence."""

    def _statistics(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str]
    ) -> Floats:
        """Return the score, and 1, of each sentence."""
        scores = np.asarray(self._scores(hypotheses, references, sources), dtype=np.float64)
        if not np.isfinite(scores).all():
            line = int(np.argmin(np.isfinite(scores))) + 1
            raise EvalError(
                f"{self.name}: must give finite scores, but gives {scores[line - 1]} for sentence {line}."
            )
        return np.column_stack([scores, np.ones_like(scores)])

    def values(self, totals: Floats) -> Floats:
        """Return the mean of the scores; see `Metric`."""
        return np.asarray(totals[..., 0] / totals[..., 1])


def make_signature(*, nrefs: int, **settings: str) -> str:
    """Return a signature in sacreBLEU's form, `nrefs:1|key:value|…`, for a metric that sacreBLEU lacks."""
    return "|".join([f"nrefs:{nrefs}", *(f"{key}:{value}" for key, value in settings.items())])


def higher_is_better(metric: str) -> bool:
    """Return whether better translations have higher values of a metric, by its name."""
    return metric.lower() not in _LOWER_IS_BETTER and not metric.lower().startswith("metricx")


def column_title(metric: str, *, higher: bool | None = None) -> str:
    """Return a metric's name, with a note if lower is better; by default its name says whether."""
    is_higher = higher_is_better(metric) if higher is None else higher
    return metric if is_higher else f"{metric} (lower is better)"


def decimals(metric: str) -> int:
    """Return the number of decimals of a metric's values that are worth reading."""
    return 4 if metric in _FOUR_DECIMALS else 2


def format_value(value: float, metric: str, *, sign: str = "") -> str:
    """Format a value of a metric, or with `sign="+"` a difference of values; zero is never negative."""
    return format_number(value, decimals(metric), sign=sign)


def format_number(value: float, places: int, *, sign: str = "") -> str:
    """Format a number with so many decimals, or with `sign="+"` a difference; zero is never negative."""
    return f"{value:{sign}z.{places}f}"


def check_alignment(
    metric: str,
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    sources: Sequence[str] = (),
    *,
    num_references: int,
) -> None:
    """Refuse hypotheses, references and sources that do not belong together line by line.

    A blank line is a sentence like any other; but where its source (without sources, its hypothesis) is not
    blank, one of its references must not be blank either.

    Args:
        metric: The metric's name, for the message.
        hypotheses: A system's output.
        references: The sentences of the first reference, those of the second, …
        sources: The source sentences; may be empty.
        num_references: The expected number of references.

    Raises:
        EvalError: If there is no sentence, the numbers differ, or sentences have no reference.
        TypeError: If `references` holds sentences, not references.
    """
    if any(isinstance(reference, str) for reference in references):
        raise TypeError(
            "`references` must hold a sequence of sentences for each reference, but holds sentences."
        )
    if not hypotheses:
        raise EvalError(f"{metric}: must have at least one sentence, but has none.")
    if len(references) != num_references:
        raise EvalError(
            f"{metric}: must have {num_references} reference(s) a sentence, but has {len(references)}."
        )
    texts = [(f"sentences in reference {i}", reference) for i, reference in enumerate(references, start=1)]
    for what, sentences in [*texts, ("sources", sources or hypotheses)]:
        if len(sentences) != len(hypotheses):
            raise EvalError(
                f"{metric}: the number of {what} must be that of hypotheses ({len(hypotheses)}), "
                f"but is {len(sentences)}."
            )
    if references:
        _check_references(metric, references, sources or hypotheses)


def _check_references(metric: str, references: Sequence[Sequence[str]], sources: Sequence[str]) -> None:
    missing = [
        str(line)
        for line, (source, *translations) in enumerate(zip(sources, *references, strict=True), start=1)
        if source.strip() and not any(map(str.strip, translations))
    ]
    if missing:
        more = f" and {len(missing) - _MAX_LISTED} more" if len(missing) > _MAX_LISTED else ""
        raise EvalError(
            f"{metric}: must have a reference for every sentence, but has none in line(s) "
            f"{', '.join(missing[:_MAX_LISTED])}{more}."
        )
