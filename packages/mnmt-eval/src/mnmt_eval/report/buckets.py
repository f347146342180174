"""Buckets of a text's sentences by length and by how rare their words are, with each system's quality."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mnmt_data.store import count_lengths
from mnmt_eval.compare.groups import group_rows, length_groups
from mnmt_eval.compare.measurements import Measurement
from mnmt_eval.compare.systems import TranslatedText
from mnmt_eval.language import languages_of
from mnmt_eval.runs.texts import ReferenceText

FREQUENCIES = {1: "once", 2: "2–4 times", 5: "5–9 times", 10: "10–49 times", 50: "50+ times"}
"""{how often the references have a word, at least: name of the bucket}."""

# Words; of scripts without spaces single characters.
_UNSPACED = "฀-໿က-႟ក-៿぀-ヿ㐀-鿿"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")


def words_of(line: str) -> list[str]:
    """Return the words of a line, or of scripts without spaces its characters."""
    return _WORD.findall(line)


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """Some sentences of a text, or some words of its references."""

    name: str
    count: int
    """Sentences, or words of the references."""
    values: Sequence[float]
    """The quality of each system there."""


@dataclass(frozen=True, kw_only=True)
class Buckets:
    """A text's sentences by one property."""

    title: str
    unit: str
    """The unit of the counts: `sentences`, or `words`."""
    value: str
    """The name of the values: a metric, or `F1`."""
    buckets: Sequence[Bucket]
    members: Sequence[Sequence[int]]
    """The buckets, by their places, of each reported sentence."""


def sentence_buckets(
    title: str, groups: Sequence[str], measurement: Measurement, rows: NDArray[np.int64]
) -> Buckets:
    """Return buckets by the group of each sentence.

    Args:
        title: The title.
        groups: The group of each sentence.
        measurement: The systems' statistics by the metric whose values are shown.
        rows: The reported sentences.
    """
    masks = group_rows(groups)
    places = {name: place for place, name in enumerate(masks)}
    return Buckets(
        title=title,
        unit="sentences",
        value=measurement.metric.name,
        buckets=[
            Bucket(
                name=name,
                count=int(mask.sum()),
                values=[measurement.metric.corpus(each[mask]).value for each in measurement.systems.values()],
            )
            for name, mask in masks.items()
        ],
        members=[[places[groups[row]]] for row in rows],
    )


def length_buckets(text: ReferenceText, measurement: Measurement, rows: NDArray[np.int64]) -> Buckets:
    """Return buckets by length of the sources, or of the references if sources are unknown."""
    lines, side = (text.src, 0) if text.src else (text.references[0], 1)
    language = languages_of(text.task)[side] if text.task else ""
    lengths, bounds = count_lengths(lines, language=language)
    title = f"Length of the {'source' if text.src else 'reference'}"
    return sentence_buckets(title, length_groups(lengths, bounds=bounds), measurement, rows)


def frequency_buckets(translated: TranslatedText, rows: NDArray[np.int64]) -> Buckets:
    """Return buckets by how often the references of the text have a word, with the F1 of its translations.

    F1 = 200 · matches / (words of references + of translations), where a word of a translation matches as
    often as its reference has it (compare-mt; Neubig et al. 2019). Words that no reference has are in no
    bucket.
    """
    references = [Counter(words_of(line)) for line in translated.text.references[0]]
    total: Counter[str] = Counter()
    for counts in references:
        total.update(counts)
    places = {word: bisect_right(list(FREQUENCIES), count) - 1 for word, count in total.items()}
    words = _count(references, places)
    scores = [_f1(references, output.lines, places, words) for output in translated.outputs]
    return Buckets(
        title="Words of the reference, by how often references have them",
        unit="words",
        value="F1",
        buckets=[
            Bucket(name=name, count=int(words[place]), values=[float(score[place]) for score in scores])
            for place, name in enumerate(FREQUENCIES.values())
        ],
        members=[sorted({places[word] for word in references[row]}) for row in rows],
    )


def _count(lines: Sequence[Counter[str]], places: Mapping[str, int]) -> NDArray[np.float64]:
    """Return the number of words in each bucket, (buckets,)."""
    counts = np.zeros(len(FREQUENCIES))
    for line in lines:
        for word, count in line.items():
            if word in places:
                counts[places[word]] += count
    return counts


def _f1(
    references: Sequence[Counter[str]],
    lines: Sequence[str],
    places: Mapping[str, int],
    words: NDArray[np.float64],
) -> NDArray[np.float64]:
    outputs = [Counter(words_of(line)) for line in lines]
    matches = _count([one & other for one, other in zip(references, outputs, strict=True)], places)
    return 200 * matches / np.maximum(words + _count(outputs, places), 1)
