"""Find texts that share most n-grams with an indexed sentence, in one pass and bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mnmt_data.filters.words import Words

_TABLE_BITS = 22
_MOST_PAIRS = 2**22
"""Most (text, sentence) pairs with a common n-gram counted at once, at some 40 bytes each."""

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class NgramIndex:
    """An index from the distinct n-grams of some sentences to the sentences that contain them."""

    share: float
    """Least share of a sentence's n-grams that a text must have."""

    ngrams: NDArray[np.uint64]
    """(n-grams,) sorted."""

    starts: Rows
    """(n-grams + 1,) n-gram i is in `sentences[starts[i]:starts[i + 1]]`."""

    sentences: Rows
    """(starts[-1],) numbers of sentences."""

    sets: NDArray[np.bool_]
    """(sentences, sets) whether the set contains the sentence."""

    @classmethod
    def of(cls, ngrams: Words, sets: NDArray[np.bool_], *, share: float) -> NgramIndex:
        """Index the n-grams of sentences, numbered as in `ngrams.texts`."""
        order = np.lexsort((ngrams.texts, ngrams.keys))
        keys, sentences = ngrams.keys[order], ngrams.texts[order]
        is_new_ngram = np.diff(keys, prepend=~keys[:1]) != 0
        is_new = is_new_ngram | (np.diff(sentences, prepend=-1) != 0)
        keys, sentences = keys[is_new], sentences[is_new]
        starts = np.append(np.flatnonzero(is_new_ngram[is_new]), len(keys))
        return cls(share=share, ngrams=keys[starts[:-1]], starts=starts, sentences=sentences, sets=sets)

    @cached_property
    def _counts(self) -> Rows:
        """(sentences,) the number of n-grams of each."""
        return np.bincount(self.sentences, minlength=len(self.sets))

    @cached_property
    def _table(self) -> NDArray[np.bool_]:
        return first_bits_table(self.ngrams)

    def find(self, ngrams: Words, texts: int) -> NDArray[np.bool_]:
        """Return the sets with a sentence that shares at least `share` of its n-grams with a text.

        Args:
            ngrams: The n-grams of the texts.
            texts: The number of texts.

        Returns:
            (texts, sets).
        """
        matches = np.zeros((texts, self.sets.shape[1]), dtype=np.bool_)
        for numbers, sentences in self._common(ngrams):
            codes, counts = np.unique(numbers * len(self.sets) + sentences, return_counts=True)
            numbers, sentences = np.divmod(codes, len(self.sets))
            enough = counts / self._counts[sentences] >= self.share
            np.logical_or.at(matches, numbers[enough], self.sets[sentences[enough]])
        return matches

    def _common(self, ngrams: Words) -> Iterator[tuple[Rows, Rows]]:
        """Yield (text, sentence) for every distinct common n-gram; a text is never split over blocks."""
        numbers, places = self._indexed(ngrams)
        counts = np.diff(self.starts)[places]
        for rows in _pieces(numbers, counts):
            repeats = counts[rows]
            ends = np.cumsum(repeats)
            # 0, 1, … within each n-gram's run of postings, which begins at starts[place].
            offsets = np.arange(ends[-1]) - np.repeat(ends - repeats, repeats)
            postings = np.repeat(self.starts[places[rows]], repeats) + offsets
            yield np.repeat(numbers[rows], repeats), self.sentences[postings]

    def _indexed(self, ngrams: Words) -> tuple[Rows, Rows]:
        """Return the distinct (text, index of the n-gram), sorted."""
        likely = ngrams.take(self._table[first_bits(ngrams.keys)])
        if not len(likely):
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        places = np.minimum(np.searchsorted(self.ngrams, likely.keys), len(self.ngrams) - 1)
        is_there = self.ngrams[places] == likely.keys
        codes = np.unique(likely.texts[is_there] * len(self.ngrams) + places[is_there])
        return np.divmod(codes, len(self.ngrams))


def _pieces(numbers: Rows, counts: Rows) -> Iterator[slice]:
    """Cut rows at changes of text into pieces of at most `_MOST_PAIRS` counts, or of one text."""
    ends = np.append(np.flatnonzero(np.diff(numbers)) + 1, len(numbers))
    totals = np.concatenate(([0], np.cumsum(counts)))
    start = 0
    while start < len(numbers):
        fits = np.searchsorted(totals[ends], totals[start] + _MOST_PAIRS, side="right") - 1
        stop = int(ends[max(fits, np.searchsorted(ends, start, side="right"))])
        yield slice(start, stop)
        start = stop


def first_bits_table(keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return whether a key begins with these bits, (2^22,): a filter that most keys of other text fail."""
    table = np.zeros(2**_TABLE_BITS, dtype=np.bool_)
    table[first_bits(keys)] = True
    return table


def first_bits(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the place of each key in the table."""
    return keys >> np.uint64(64 - _TABLE_BITS)
