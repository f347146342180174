"""Training pairs with a sentence of a dev or test set, or with a near copy of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from mnmt_data.filters.keys import near_forms, text_keys
from mnmt_data.filters.ngrams import NgramIndex
from mnmt_data.filters.words import fold, words_of

EXACT, NORMAL_FORM, NGRAMS = "exact", "normal form", "n-grams"

CHUNK_PAIRS = 4096
"""Pairs looked at together: few enough for their letters to stay in the processor's cache."""

Matches = NDArray[np.bool_]
"""(texts or pairs, sets) the sets with a sentence that each is a copy of."""


@dataclass(frozen=True, kw_only=True)
class LeakConfig:
    """The rules by which a training pair is a copy of a dev or test sentence, and left out.

    Each looks at either side of a pair, and at the sentences of all dev and test sets of all tasks. Equal
    sentences are left out in any case. Synthetic languages repeat their sentences on purpose: none of their
    pairs is left out.
    """

    normal_form: bool = True
    """Whether to leave out what differs in case, digits, punctuation and spaces only."""

    ngrams: bool = True
    """Whether to leave out what has a `share` of a sentence's n-grams, wherever they stand in it."""

    ngram_words: int = 4
    """Words of an n-gram; where a script has no spaces, letters."""

    share: float = 0.6
    """Least share of a dev or test sentence's distinct n-grams that a copy of it has."""

    min_words: int = 8
    """Words, or letters where a script has no spaces, of the shortest dev or test sentence of which n-grams
    find copies. Shorter ones are too much alike."""

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ValueError(f"`share` must be above 0 and at most 1, but is {self.share}.")
        if self.ngram_words < 1:
            raise ValueError(f"`ngram_words` must be at least 1, but is {self.ngram_words}.")
        if self.min_words < self.ngram_words:
            raise ValueError(
                f"`min_words` must be at least `ngram_words` ({self.ngram_words}), but is {self.min_words}."
            )

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of the rules in use, in the order in which they are applied."""
        use = {EXACT: True, NORMAL_FORM: self.normal_form, NGRAMS: self.ngrams}
        return tuple(rule for rule, is_used in use.items() if is_used)


class LeakFinder:
    """Finds copies of the sentences of dev and test sets; its memory depends only on these."""

    def __init__(self, sentences: Mapping[str, Sequence[str]], config: LeakConfig) -> None:
        """Index the sentences.

        Args:
            sentences: {set: its sentences of both sides, normalised}.
            config: The rules.
        """
        self.config = config
        lines = list(chain(*sentences.values()))
        sizes = np.array(list(map(len, sentences.values())), dtype=np.int64)
        numbers = np.repeat(np.arange(len(sentences)), sizes)
        sets = numbers[:, None] == np.arange(len(sentences))
        self._exact = KeySets.of(text_keys(lines), sets)
        self._normal = KeySets.of(text_keys(near_forms(lines)), sets)
        words = words_of(fold(lines))
        long = np.bincount(words.texts, minlength=len(lines)) >= config.min_words
        ngrams = words.ngrams(config.ngram_words)
        self._ngrams = NgramIndex.of(ngrams.take(long[ngrams.texts]), sets, share=config.share)

    def find(self, src: Sequence[str], tgt: Sequence[str]) -> NDArray[np.bool_]:
        """Return which rules find a copy of a sentence of which set on either side of normalised pairs.

        Returns:
            (pairs, rules, sets), the rules as in `LeakConfig.rules`.
        """
        chunks = [slice(start, start + CHUNK_PAIRS) for start in range(0, max(len(src), 1), CHUNK_PAIRS)]
        return np.concatenate([self._find(src[rows]) | self._find(tgt[rows]) for rows in chunks])

    def _find(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        config, points = self.config, fold(texts)
        matches = {EXACT: self._exact.find(text_keys(texts))}
        if config.normal_form:
            matches[NORMAL_FORM] = self._normal.find(text_keys(near_forms(texts, points)))
        if config.ngrams:
            ngrams = words_of(points).ngrams(config.ngram_words)
            matches[NGRAMS] = self._ngrams.find(ngrams, len(texts))
        return np.stack([matches[rule] for rule in config.rules], axis=1)


@dataclass(frozen=True, eq=False)
class KeySets:
    """For each of some keys, the sets that it is in."""

    keys: NDArray[np.uint64]
    """(keys,) rising."""

    sets: Matches
    """(keys, sets)."""

    @classmethod
    def of(cls, keys: NDArray[np.uint64], sets: Matches) -> KeySets:
        """Join the sets of equal keys."""
        distinct, places = np.unique(keys, return_inverse=True)
        joined = np.zeros((len(distinct), sets.shape[1]), dtype=np.bool_)
        np.logical_or.at(joined, places, sets)
        return cls(distinct, joined)

    def find(self, keys: NDArray[np.uint64]) -> Matches:
        """Return the sets that each key is in: (keys, sets)."""
        matches = np.zeros((len(keys), self.sets.shape[1]), dtype=np.bool_)
        if len(self.keys):
            places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
            rows = np.flatnonzero(self.keys[places] == keys)
            matches[rows] = self.sets[places[rows]]
        return matches
