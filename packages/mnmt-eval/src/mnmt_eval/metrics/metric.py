"""A metric's value together with all that makes it reproducible."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mnmt_eval.errors import EvalError


@dataclass(frozen=True, kw_only=True)
class Score:
    """The value of a metric on a corpus."""

    name: str
    """The metric's name, such as `chrf++`."""

    value: float
    """On the metric's own scale: from 0 to 100 but for `bleurt` and `comet`; `ter` may exceed 100."""

    signature: str
    """The metric's signature."""


def signature(*, nrefs: int, **settings: str) -> str:
    """The signature of a metric that is not sacreBLEU's, in sacreBLEU's form."""
    return "|".join([f"nrefs:{nrefs}", *(f"{key}:{value}" for key, value in settings.items())])


def resampled_signature(metric: str, **settings: int) -> str:
    """A metric's signature with how was resampled, where sacreBLEU puts it: after the references."""
    nrefs, *rest = metric.split("|")
    return "|".join([nrefs, *(f"{key}:{value}" for key, value in settings.items()), *rest])


_SMALL_NUMBERS = ("bleurt", "comet", "loss")
_LOWER_IS_BETTER = ("ter", "loss")


def higher_is_better(metric: str) -> bool:
    """Whether better translations have higher values of a metric, or of a run's `loss`."""
    return metric not in _LOWER_IS_BETTER


def titled(metric: str) -> str:
    """A metric's name, and that lower is better where it is."""
    return metric if higher_is_better(metric) else f"{metric} (lower is better)"


def decimals(metric: str) -> int:
    """How many decimals of a metric's values are worth reading."""
    return 4 if metric in _SMALL_NUMBERS else 2


def shown(value: float, metric: str, *, sign: str = "") -> str:
    """A value, or with `sign="+"` a difference, with as many decimals."""
    return f"{value:{sign}.{decimals(metric)}f}"


Floats: TypeAlias = NDArray[np.float64]


class Metric(Protocol):
    """A metric of a corpus that depends on its sentences only through sums over them.

    The statistics of the sentences are computed once; the value of the corpus, of any part of it and of any
    resample of it is then a function of their sum.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name in the registry."""

    @property
    @abstractmethod
    def signature(self) -> str:
        """All that is needed to compute the same value again: `nrefs:1|…`."""

    @property
    def higher_is_better(self) -> bool:
        """Whether a better translation has a higher value."""
        return higher_is_better(self.name)

    @abstractmethod
    def sentence_statistics(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str] = ()
    ) -> Floats:
        """What the metric must know of each sentence, (sentences, k).

        Args:
            hypotheses: A system's output.
            references: The sentences of the first reference, those of the second, …
            sources: What was translated, for metrics that look at it.

        Raises:
            EvalError: If these do not belong together.
        """

    @abstractmethod
    def values(self, totals: Floats) -> Floats:
        """Values of corpora whose statistics sum to `totals`, (…, k); of shape (…)."""

    def sentence_scores(self, statistics: Floats) -> Floats:
        """The value of each sentence alone, (sentences,)."""
        return self.values(statistics)

    def corpus(self, statistics: Floats) -> Score:
        """The value of the corpus whose sentences have these statistics, (sentences, k)."""
        return self._scored(float(self.values(statistics.sum(axis=0))))

    def score(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str] = ()
    ) -> Score:
        """The value of a system's output; arguments as of `sentence_statistics`."""
        return self.corpus(self.sentence_statistics(hypotheses, references, sources))

    def _scored(self, value: float) -> Score:
        return Score(name=self.name, value=value, signature=self.signature)


class MeanMetric(Metric):
    """The mean over sentences of a score.

    Statistics: the score, and 1.
    """

    def __init__(self, *, num_references: int) -> None:
        self._num_references = num_references

    @abstractmethod
    def _scores(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str]
    ) -> Sequence[float]:
        """A score for each sentence."""

    def sentence_statistics(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str] = ()
    ) -> Floats:
        """The score, and 1, as in `Metric`."""
        check_alignment(self.name, hypotheses, references, sources, num_references=self._num_references)
        scores = np.asarray(self._scores(hypotheses, references, sources), dtype=np.float64)
        if not np.isfinite(scores).all():
            line = int(np.argmin(np.isfinite(scores))) + 1
            raise EvalError(
                f"{self.name}: must give finite scores, but gives {scores[line - 1]} for sentence {line}."
            )
        return np.column_stack([scores, np.ones_like(scores)])

    def values(self, totals: Floats) -> Floats:
        """The mean of the scores, as in `Metric`."""
        return np.asarray(totals[..., 0] / totals[..., 1])


_NAMED_LINES = 5


def check_alignment(
    metric: str,
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    sources: Sequence[str] = (),
    *,
    num_references: int,
) -> None:
    """Refuse texts that a metric would only seem to measure.

    A blank line is a sentence like any other; but where its source (without sources, its hypothesis) is not
    blank, one of its references must not be blank either.

    Args:
        metric: Its name, for the message.
        hypotheses: A system's output.
        references: The sentences of the first reference, those of the second, …
        sources: What was translated; may be empty.
        num_references: How many references there must be.

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
    named = [(f"sentences in reference {i}", reference) for i, reference in enumerate(references, start=1)]
    for what, sentences in [*named, ("sources", sources or hypotheses)]:
        if len(sentences) != len(hypotheses):
            raise EvalError(
                f"{metric}: must have as many {what} as hypotheses ({len(hypotheses)}), "
                f"but has {len(sentences)}."
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
        more = f" and {len(missing) - _NAMED_LINES} more" if len(missing) > _NAMED_LINES else ""
        raise EvalError(
            f"{metric}: must have a reference for every sentence, but has none in line(s) "
            f"{', '.join(missing[:_NAMED_LINES])}{more}."
        )
