"""Training pairs with a sentence of a dev or test set, or with a near copy of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mnmt_data.filters.keys import near_forms, text_keys
from mnmt_data.filters.ngrams import NgramIndex
from mnmt_data.filters.words import fold, words_of
from mnmt_data.study import Ranges, check_ranges

EXACT, NORMAL_FORM, NGRAMS = "exact", "normal form", "n-grams"

CHUNK_PAIRS = 4096
"""Pairs processed together: few enough for their letters to stay in the processor's cache."""

Matches = NDArray[np.bool_]
"""Whether texts or pairs are copies of sentences of sets; their last axis is that of the sets."""


@dataclass(frozen=True, kw_only=True)
class LeakConfig:
    """The rules for dropping training pairs that are copies of dev or test sentences.

    Each rule compares either side of a pair with the sentences of all dev and test sets of all tasks. Equal
    sentences are always dropped. Synthetic languages repeat sentences on purpose and keep all pairs.
    """

    RANGES: ClassVar[Ranges] = {
        "(0, 1]": ("share",),
        "[1, 1000]": ("ngram_words",),
        "[1, inf)": ("min_words",),
    }

    normal_form: bool = True
    """Whether to drop copies that differ only in case, digits, punctuation and spaces."""

    ngrams: bool = True
    """Whether to drop copies that have at least a `share` of a sentence's n-grams, at any place."""

    ngram_words: int = 4
    """Words of an n-gram, or letters in a script without spaces."""

    share: float = 0.6
    """Least share of a dev or test sentence's distinct n-grams in a copy of it."""

    min_words: int = 8
    """Fewest words (letters in a script without spaces) of a dev or test sentence whose copies are found by
    n-grams. Shorter sentences are too similar."""

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.min_words < self.ngram_words:
            raise ValueError(
                f"`min_words` must be at least `ngram_words` ({self.ngram_words}), but is {self.min_words}."
            )

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of the rules in use, in order of application."""
        use = {EXACT: True, NORMAL_FORM: self.normal_form, NGRAMS: self.ngrams}
        return tuple(rule for rule, is_used in use.items() if is_used)


class LeakFinder:
    """Finds copies of dev and test sentences; memory depends only on these sentences."""

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
        sets = np.equal.outer(numbers, np.arange(len(sentences)))
        words = words_of(fold(lines))
        is_long = np.bincount(words.texts, minlength=len(lines)) >= config.min_words
        ngrams = words.ngrams(config.ngram_words)
        self._exact = KeySets.of(text_keys(lines), sets)
        self._normal = KeySets.of(text_keys(near_forms(lines)), sets)
        self._ngrams = NgramIndex.of(ngrams.take(is_long[ngrams.texts]), sets, share=config.share)

    def find(self, src: Sequence[str], tgt: Sequence[str]) -> Matches:
        """Return whether a rule finds a copy of a sentence of a set on either side of normalised pairs.

        Returns:
            (pairs, rules, sets), the rules as in `LeakConfig.rules`.
        """
        chunks = [slice(start, start + CHUNK_PAIRS) for start in range(0, max(len(src), 1), CHUNK_PAIRS)]
        return np.concatenate([self._find(src[rows]) | self._find(tgt[rows]) for rows in chunks])

    def _find(self, texts: Sequence[str]) -> Matches:
        """Return (texts, rules, sets)."""
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
    """Keys of sentences, with the sets that contain each."""

    keys: NDArray[np.uint64]
    """(keys,) sorted."""

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
        """Return the sets that contain each key: (keys, sets)."""
        matches = np.zeros((len(keys), self.sets.shape[1]), dtype=np.bool_)
        if len(self.keys):
            places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
            rows = np.flatnonzero(self.keys[places] == keys)
            matches[rows] = self.sets[places[rows]]
        return matches
