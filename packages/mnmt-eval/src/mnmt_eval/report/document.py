"""The contents of a report: a comparison of each text, and the sentences to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mnmt_eval.compare.comparison import TextComparison, all_remarks, check_baseline, compare_measurements
from mnmt_eval.compare.config import CompareConfig
from mnmt_eval.compare.groups import group_sentences
from mnmt_eval.compare.measurements import Measurement, measure
from mnmt_eval.compare.systems import TranslatedText
from mnmt_eval.errors import EvalError
from mnmt_eval.metrics.language_accuracy import LanguageAccuracy
from mnmt_eval.report.buckets import Buckets, length_buckets, sentence_buckets
from mnmt_eval.report.symptoms import symptoms, words_of
from mnmt_eval.runs.texts import ReferenceText

WRONG_LANGUAGE = "wrong language"
"""The symptom of translations that the metric `language` finds off-target."""

FEW_WORDS = 5
"""Lines of fewer words differ by all or nothing, so they come last among disagreements."""


@dataclass(frozen=True, kw_only=True)
class ReportConfig:
    """The options of a report.

    Raises:
        EvalError: If a field is out of its range.
    """

    comparison: CompareConfig = field(default_factory=CompareConfig)
    """The options of the comparison of each text."""
    worst_by: str | None = None
    """The metric that sentences are sorted by: one of the comparison's, or `loss` if it compares losses. By
    default `chrf`, or the first if that is not among them."""
    sentences: int = 1000
    """Sentences of each text; those on which systems disagree most, or that some system translated worst."""
    baseline: str | None = None
    """The system that others are tested against; by default the first."""
    title: str = ""
    """The page's title; by default the number of systems."""

    def __post_init__(self) -> None:
        if self.worst_by is not None and self.worst_by not in self.comparison.names:
            names = ", ".join(self.comparison.names)
            raise EvalError(f"`worst_by` must be one of the metrics, {names}, but is {self.worst_by!r}.")
        if self.sentences < 1:
            raise EvalError(f"`sentences` must be at least 1, but is {self.sentences}.")

    @property
    def sorted_by(self) -> str:
        """The metric that sentences are sorted by."""
        names = self.comparison.names
        return self.worst_by or ("chrf" if "chrf" in names else names[0])

    @property
    def place(self) -> int:
        """The place of `sorted_by` among the metrics, after which come losses."""
        return self.comparison.names.index(self.sorted_by)


@dataclass(frozen=True, kw_only=True)
class ReportedSystem:
    """One system's translations of the reported sentences."""

    name: str
    translations: Sequence[str]
    """A translation per reported sentence."""
    sentence_scores: Sequence[float | None]
    """The score by `worst_by` of every sentence of the text; None where a blank translation is right."""
    symptoms: Sequence[Sequence[str]]
    """The symptoms of each translation, of `SYMPTOMS` and `WRONG_LANGUAGE`."""
    symptom_counts: Mapping[str, int]
    """{symptom: the sentences of the text that show it}."""


@dataclass(frozen=True, kw_only=True)
class ReportedText:
    """The reported sentences of one text."""

    testset: str
    task: str
    total: int
    """The number of all sentences of the text."""
    numbers: Sequence[int]
    """The numbers of the reported sentences in the text, from 1."""
    sources: Sequence[str]
    """Source sentences; empty if unknown."""
    references: Sequence[Sequence[str]]
    """The sentences of the first reference, those of the second, …"""
    is_short: Sequence[bool]
    """Whether source, references and translations of a reported sentence all have fewer than `FEW_WORDS`."""
    systems: Sequence[ReportedSystem]
    buckets: Mapping[str, Buckets]
    """{`length` or `group`: the sentences by that}; `group` if groups were requested."""


@dataclass(frozen=True, kw_only=True)
class ReportContent:
    """Everything that a page shows."""

    comparisons: Sequence[TextComparison]
    """Each text's metrics, with ranks and tests."""
    worst_by: str
    """The metric that sentences are sorted by."""
    texts: Sequence[ReportedText]
    remarks: Sequence[str] = ()
    """A line for whatever makes scores mislead; see `mnmt_eval.text.remarks_on`."""
    title: str = ""
    """The page's title; by default the number of systems."""

    @property
    def metrics(self) -> list[str]:
        """The names of the metrics."""
        return [metric.metric for metric in self.comparisons[0].metrics]


def make_report(translated: Sequence[TranslatedText], config: ReportConfig) -> ReportContent:
    """Score systems' translations of texts, and select the sentences to report.

    Args:
        translated: The texts.
        config: The options.

    Raises:
        EvalError: If a metric or group lacks what it needs, or there is no such baseline.
        RunError: If a run cannot be loaded for its losses.
        DataError: If its data cannot be read.
    """
    for each in translated:
        check_baseline(each, config.baseline)
    measurements = [measure(each, config.comparison) for each in translated]
    comparisons = [
        compare_measurements(each, by_metric, config.comparison, baseline=config.baseline)
        for each, by_metric in zip(translated, measurements, strict=True)
    ]
    return ReportContent(
        comparisons=comparisons,
        worst_by=config.sorted_by,
        texts=[
            _report_text(each, by_metric, config)
            for each, by_metric in zip(translated, measurements, strict=True)
        ],
        remarks=all_remarks(translated, comparisons),
        title=config.title,
    )


def rows_to_read(badness: NDArray[np.float64], count: int, is_short: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the sentences on which systems disagree most, and the worst of each system.

    Args:
        badness: (systems, sentences), higher where a translation is worse; nan where it has no score.
        count: The number of sentences.
        is_short: Sentences whose disagreements count as the least, (sentences,).

    Returns:
        Rows in ascending order, selected by each sentence's best place on the list of disagreements and on
        any system's list of its worst.
    """
    scored = np.nan_to_num(badness, nan=-np.inf)
    disagreement = np.where(np.isnan(badness).any(axis=0) | is_short, -np.inf, np.ptp(badness, axis=0))
    lists = scored if len(badness) == 1 else np.vstack([scored, disagreement])
    places = np.argsort(np.argsort(-lists, axis=1, kind="stable"), axis=1, kind="stable")
    rows = np.argsort(places.min(axis=0), kind="stable")[:count]
    return np.sort(rows)


def _report_text(
    translated: TranslatedText, measurements: Sequence[Measurement], config: ReportConfig
) -> ReportedText:
    text = translated.text
    sorting = measurements[config.place]
    scores = np.stack([sorting.metric.sentence_scores(each) for each in sorting.systems.values()])
    scores[_rightly_blank(translated)] = np.nan  # to which metrics give no fair score
    badness = -scores if sorting.metric.higher_is_better else scores
    is_short = _are_short(translated)
    rows = rows_to_read(badness, config.sentences, is_short)
    return ReportedText(
        testset=text.testset,
        task=text.task,
        total=len(text),
        numbers=(rows + 1).tolist(),
        sources=_take(text.src, rows),
        references=[_take(lines, rows) for lines in text.references],
        is_short=is_short[rows].tolist(),
        systems=[
            _report_system(translated, place, scores[place], rows, measurements, config)
            for place in range(len(translated.names))
        ],
        buckets={
            **({"length": length_buckets(text, sorting, rows)} if text.src or text.references else {}),
            **_group_buckets(text, sorting, rows, config.comparison.grouping),
        },
    )


def _are_short(translated: TranslatedText) -> NDArray[np.bool_]:
    """Return which sentences have fewer than `FEW_WORDS` words in every text, (sentences,)."""
    text = translated.text
    texts = [*text.references, *[text.src] * bool(text.src), *(output.lines for output in translated.outputs)]
    return np.array(
        [all(len(words_of(line)) < FEW_WORDS for line in lines) for lines in zip(*texts, strict=True)]
    )


def _group_buckets(
    text: ReferenceText,
    measurement: Measurement,
    rows: NDArray[np.int64],
    grouping: str | None,
) -> dict[str, Buckets]:
    """Return the buckets of requested groups, but of those by length, which are there in any case."""
    if grouping in (None, "length"):
        return {}
    groups = group_sentences(text, str(grouping))
    return {"group": sentence_buckets(f"Groups by {grouping}", groups, measurement, rows)}


def _rightly_blank(translated: TranslatedText) -> NDArray[np.bool_]:
    """Return which translations are blank as their references are, or else sources, (systems, sentences)."""
    text = translated.text
    originals = text.references or ([text.src] if text.src else [["unknown"] * len(text)])
    references = [any(map(str.strip, lines)) for lines in zip(*originals, strict=True)]
    lines = [[bool(line.strip()) for line in output.lines] for output in translated.outputs]
    return np.logical_not(np.logical_or(lines, references))


def _report_system(
    translated: TranslatedText,
    place: int,
    scores: NDArray[np.float64],
    rows: NDArray[np.int64],
    measurements: Sequence[Measurement],
    config: ReportConfig,
) -> ReportedSystem:
    name, text, lines = translated.names[place], translated.text, translated.outputs[place].lines
    by_line = _symptoms(text, lines, _in_wrong_language(name, measurements, len(text)))
    rounded = scores.round(measurements[config.place].metric.decimals)
    return ReportedSystem(
        name=name,
        translations=_take(lines, rows),
        sentence_scores=[None if np.isnan(score) else float(score) for score in rounded],
        symptoms=[by_line[row] for row in rows],
        symptom_counts=dict(Counter(symptom for names in by_line for symptom in names)),
    )


def _symptoms(
    text: ReferenceText, lines: Sequence[str], is_wrong: NDArray[np.bool_]
) -> list[tuple[str, ...]]:
    sources = text.src or [""] * len(text)
    references = zip(*text.references, strict=True) if text.references else [()] * len(text)
    return [
        (*symptoms(source, expected, line), *[WRONG_LANGUAGE] * wrong)
        for source, expected, line, wrong in zip(sources, references, lines, is_wrong.tolist(), strict=True)
    ]


def _in_wrong_language(name: str, measurements: Sequence[Measurement], sentences: int) -> NDArray[np.bool_]:
    """Return which outputs, (sentences,), are in another language; none if languages are not measured."""
    for each in measurements:
        if isinstance(each.metric, LanguageAccuracy):
            statistics = each.systems[name]
            return np.asarray(statistics.any(axis=1) & (each.metric.values(statistics) == 0))
    return np.zeros(sentences, dtype=bool)


def _take(lines: Sequence[str], rows: NDArray[np.int64]) -> list[str]:
    return [lines[row] for row in rows] if lines else []
