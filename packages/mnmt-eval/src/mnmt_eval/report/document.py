"""What a report holds: of each text the sentences that some system translated worst."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mnmt_eval.compare.comparison import Measured, measure_systems
from mnmt_eval.compare.systems import TranslatedText
from mnmt_eval.errors import EvalError
from mnmt_eval.metrics import LanguageAccuracy
from mnmt_eval.metrics.metric import decimals
from mnmt_eval.metrics.registry import MetricChoice
from mnmt_eval.report.symptoms import symptoms

WRONG_LANGUAGE = "wrong language"
"""A symptom that the metric `language` tells."""


@dataclass(frozen=True, kw_only=True)
class Reporting:
    """What to report.

    Raises:
        EvalError: If a field is out of its range.
    """

    metrics: MetricChoice = field(default_factory=MetricChoice)
    """Metrics of whole texts, and that which sentences are sorted by."""

    worst_by: str = "chrf"
    """The metric that says which translations are worst, one of `metrics`."""

    sentences: int = 200
    """Sentences of each text; those that some system translated worst."""

    def __post_init__(self) -> None:
        if self.worst_by not in self.metrics.names:
            names = ", ".join(self.metrics.names)
            raise EvalError(f"`worst_by` must be one of the metrics, {names}, but is {self.worst_by!r}.")
        if self.sentences < 1:
            raise EvalError(f"`sentences` must be at least 1, but is {self.sentences}.")

    @property
    def place(self) -> int:
        """Of `worst_by` among the metrics."""
        return self.metrics.names.index(self.worst_by)


@dataclass(frozen=True, kw_only=True)
class ReportedScore:
    """A metric of one system on a whole text, with its 95% interval."""

    value: float
    lower: float
    upper: float


@dataclass(frozen=True, kw_only=True)
class ReportedSystem:
    """One system's translations of the sentences that are reported."""

    name: str
    scores: Mapping[str, ReportedScore]
    """{metric: its value on all sentences}."""

    translations: Sequence[str]
    sentence_scores: Sequence[float | None]
    """Of each translation by the metric that sentences are sorted by; None where it is rightly blank."""

    symptoms: Sequence[Sequence[str]]
    """What each translation shows of `SYMPTOMS`; and `WRONG_LANGUAGE`, if languages are measured."""


@dataclass(frozen=True, kw_only=True)
class ReportedText:
    """The reported sentences of one text."""

    testset: str
    task: str
    total: int
    """Sentences of the text."""

    numbers: Sequence[int]
    """Places of the reported sentences in the text, from 1."""

    sources: Sequence[str]
    """Empty where they are not known."""

    references: Sequence[Sequence[str]]
    """The sentences of the first reference, those of the second, …"""

    systems: Sequence[ReportedSystem]


@dataclass(frozen=True, kw_only=True)
class Document:
    """All that a page shows."""

    metrics: Sequence[str]
    signatures: Mapping[str, Sequence[str]]
    """{metric: its signatures, which may differ with the target language, and COMET's with the system}."""

    searches: Sequence[str]
    """Signatures of the runs' searches."""

    decimals: Mapping[str, int]
    """{metric: decimals of its values that are worth reading}."""

    worst_by: str
    higher_is_better: bool
    """Of `worst_by`."""

    texts: Sequence[ReportedText]


def document(translated: Sequence[TranslatedText], reporting: Reporting) -> Document:
    """Measure what systems made of texts, and choose the sentences to show.

    Args:
        translated: The texts.
        reporting: What to report.

    Raises:
        EvalError: If a metric lacks what it needs.
    """
    measured = [measure_systems(each, reporting.metrics) for each in translated]
    (first, *_) = measured[0][reporting.place].values()
    return Document(
        metrics=reporting.metrics.names,
        signatures={
            name: _signatures(of_text[place] for of_text in measured)
            for place, name in enumerate(reporting.metrics.names)
        },
        searches=list(dict.fromkeys(search for each in translated for search in each.searches.values())),
        decimals={name: decimals(name) for name in reporting.metrics.names},
        worst_by=reporting.worst_by,
        higher_is_better=first.metric.higher_is_better,
        texts=[_text(each, of_text, reporting) for each, of_text in zip(translated, measured, strict=True)],
    )


def _signatures(measured: Iterable[Mapping[str, Measured]]) -> list[str]:
    """All different ones of a metric, over texts and systems."""
    return list(dict.fromkeys(made.metric.signature for of_text in measured for made in of_text.values()))


def worst_rows(badness: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """The sentences that some system did worst on.

    Args:
        badness: (systems, sentences), higher where a translation is worse.
        count: How many.

    Returns:
        Rows in ascending order, chosen by each sentence's best place on any system's list of its worst.
    """
    places = np.argsort(np.argsort(-badness, axis=1, kind="stable"), axis=1, kind="stable")
    chosen = np.argsort(places.min(axis=0), kind="stable")[:count]
    return np.sort(chosen)


def _text(
    translated: TranslatedText,
    measured: Sequence[Mapping[str, Measured]],
    reporting: Reporting,
) -> ReportedText:
    text = translated.text
    sorting = [measured[reporting.place][name] for name in translated.names]
    scores = np.stack([made.metric.sentence_scores(made.statistics) for made in sorting])
    scores[_rightly_blank(translated)] = np.nan  # to which metrics give no fair score
    badness = -scores if sorting[0].metric.higher_is_better else scores
    rows = worst_rows(np.nan_to_num(badness, nan=-np.inf), reporting.sentences)
    kept = scores[:, rows].round(decimals(reporting.worst_by))
    return ReportedText(
        testset=text.testset,
        task=text.task,
        total=len(text),
        numbers=(rows + 1).tolist(),
        sources=_take(text.src, rows),
        references=[_take(lines, rows) for lines in text.references],
        systems=[
            _system(translated, place, kept[place], rows, measured) for place in range(len(translated.names))
        ],
    )


def _rightly_blank(translated: TranslatedText) -> NDArray[np.bool_]:
    """Which translations are blank as their references are, (systems, sentences)."""
    references = [any(map(str.strip, lines)) for lines in zip(*translated.text.references, strict=True)]
    lines = [[bool(line.strip()) for line in made.lines] for made in translated.translations]
    return np.logical_not(np.logical_or(lines, references))


def _system(
    translated: TranslatedText,
    place: int,
    scores: NDArray[np.float64],
    rows: NDArray[np.int64],
    measured: Sequence[Mapping[str, Measured]],
) -> ReportedSystem:
    name, text = translated.names[place], translated.text
    lines = _take(translated.translations[place].lines, rows)
    sources = _take(text.src, rows) or [""] * len(rows)
    references = zip(*(_take(lines, rows) for lines in text.references), strict=True)
    is_wrong = _in_wrong_language(name, measured, len(text))[rows].tolist()
    signs = [
        (*symptoms(source, meant, line), *[WRONG_LANGUAGE] * wrong)
        for source, meant, line, wrong in zip(sources, references, lines, is_wrong, strict=True)
    ]
    return ReportedSystem(
        name=name,
        scores={of_metric[name].metric.name: _score(of_metric[name]) for of_metric in measured},
        translations=lines,
        sentence_scores=[None if np.isnan(score) else float(score) for score in scores],
        symptoms=signs,
    )


def _in_wrong_language(
    name: str, measured: Sequence[Mapping[str, Measured]], sentences: int
) -> NDArray[np.bool_]:
    """Which outputs, (sentences,), are in another language than the target; none where none is identified."""
    for made in (systems[name] for systems in measured):
        if isinstance(made.metric, LanguageAccuracy):
            return np.asarray(made.statistics.any(axis=1) & (made.metric.values(made.statistics) == 0))
    return np.zeros(sentences, dtype=bool)


def _score(made: Measured) -> ReportedScore:
    interval = made.interval()
    return ReportedScore(value=interval.value, lower=interval.lower, upper=interval.upper)


def _take(lines: Sequence[str], rows: NDArray[np.int64]) -> list[str]:
    return [lines[row] for row in rows] if lines else []
