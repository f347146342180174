"""Buckets of a text's sentences by length or group, with each system's quality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mnmt_data.store import count_lengths
from mnmt_eval.compare.groups import group_rows, length_groups
from mnmt_eval.compare.measurements import Measurement
from mnmt_eval.language import languages_of
from mnmt_eval.runs.texts import ReferenceText


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """Some sentences of a text."""

    name: str
    count: int
    values: Sequence[float]
    """The quality of each system there."""


@dataclass(frozen=True, kw_only=True)
class Buckets:
    """A text's sentences by one property."""

    title: str
    buckets: Sequence[Bucket]
    members: Sequence[int]
    """The place of each reported sentence's bucket."""


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
        buckets=[
            Bucket(
                name=name,
                count=int(mask.sum()),
                values=[measurement.metric.corpus(each[mask]).value for each in measurement.systems.values()],
            )
            for name, mask in masks.items()
        ],
        members=[places[groups[row]] for row in rows],
    )


def length_buckets(text: ReferenceText, measurement: Measurement, rows: NDArray[np.int64]) -> Buckets:
    """Return buckets by length of the sources, or of the references if sources are unknown."""
    lines, side = (text.src, 0) if text.src else (text.references[0], 1)
    language = languages_of(text.task)[side] if text.task else ""
    lengths, bounds = count_lengths(lines, language=language)
    title = f"Length of the {'source' if text.src else 'reference'}"
    return sentence_buckets(title, length_groups(lengths, bounds=bounds), measurement, rows)
