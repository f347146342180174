"""Counts of the n-grams that any two sentences share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from mnmt_eval.metrics.protocol import Floats

_BLOCK = 2**22
"""The entries of a block of the incidence matrix, to bound memory."""


def pairwise_counts(
    ngrams_of: Callable[[str], Sequence[Mapping[Any, int]]],
    hypotheses: Sequence[str],
    references: Sequence[str],
) -> Floats:
    """Count the n-grams of each hypothesis, of each reference, and of both together.

    Args:
        ngrams_of: A function that counts a sentence's n-grams, order by order.
        hypotheses: Sentences.
        references: Sentences, which may be the same.

    Returns:
        N-grams in the hypothesis, in the reference and in both, (3, hypotheses, references, orders).
    """
    sentences = list(dict.fromkeys([*hypotheses, *references]))
    ngrams = [ngrams_of(sentence) for sentence in sentences]
    totals = np.array([[sum(order.values()) for order in orders] for orders in ngrams], dtype=np.float64)
    shared = np.stack([shared_counts(order) for order in zip(*ngrams, strict=True)], axis=-1)
    places = {sentence: place for place, sentence in enumerate(sentences)}
    rows, columns = ([places[sentence] for sentence in each] for each in (hypotheses, references))
    matches = shared[np.ix_(rows, columns)]
    in_hypothesis = np.broadcast_to(totals[rows, None], matches.shape)
    in_reference = np.broadcast_to(totals[columns], matches.shape)
    return np.stack([in_hypothesis, in_reference, matches])


def shared_counts(counts: Sequence[Mapping[Hashable, int]]) -> Floats:
    """Return the number of n-grams that any two sentences share, (sentences, sentences).

    Sentences with a and b copies of an n-gram share min(a, b) of them. With a column for its first copy, one
    for its second and so on, a sentence is a row X of zeros and ones, and the counts are X Xᵀ, exactly.

    Args:
        counts: The n-grams of each sentence, with their counts.
    """
    places: dict[tuple[Hashable, int], int] = {}
    entries = [
        (row, places.setdefault((ngram, occurrence), len(places)))
        for row, ngrams in enumerate(counts)
        for ngram, count in ngrams.items()
        for occurrence in range(count)
    ]
    rows, columns = np.array(entries, dtype=np.int64).reshape(-1, 2).T
    order = np.argsort(columns, kind="stable")
    rows, columns = rows[order], columns[order]
    shared = np.zeros((len(counts), len(counts)))
    width = max(1, min(len(places), _BLOCK // max(1, len(counts))))
    for start in range(0, len(places), width):
        first, last = np.searchsorted(columns, [start, start + width])
        block = np.zeros((len(counts), width), dtype=np.float32)
        block[rows[first:last], columns[first:last] - start] = 1
        shared += block @ block.T
    return shared
