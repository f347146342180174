"""Training pairs with a sentence of a dev or test set, or with a near copy of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mnmt_data.filters.keys import near_forms, text_keys
from mnmt_data.filters.ngrams import NgramIndex, first_bits, first_bits_table
from mnmt_data.filters.words import Words, fold, words_of
from mnmt_data.study import Ranges, check_ranges

EXACT, NORMAL_FORM, NGRAMS = "exact", "normal form", "n-grams"

CHUNK_PAIRS = 4096
"""Pairs processed together: few enough for their letters to stay in the processor's cache."""

Rows = NDArray[np.int64]
Matches = NDArray[np.bool_]
"""(texts or pairs, sets) whether each is a copy of a sentence of the set."""


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


@dataclass(frozen=True, eq=False, kw_only=True)
class LeakMatches:
    """What a search of training pairs found."""

    rules: Matches
    """(pairs, rules, sets) whether a rule finds a copy of a sentence of the set on either side of a pair, the
    rules as in `LeakConfig.rules`."""

    inside: NDArray[np.bool_]
    """(sentences,) whether a short sentence stands whole in a pair that no rule finds."""


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
        self._short = ShortSentences.of(words.take(~is_long[words.texts]), len(lines))

    def find(self, src: Sequence[str], tgt: Sequence[str]) -> LeakMatches:
        """Search normalised pairs."""
        rules, inside = [], np.zeros(len(self._short.numbers), dtype=np.bool_)
        for start in range(0, max(len(src), 1), CHUNK_PAIRS):
            rows = slice(start, start + CHUNK_PAIRS)
            sides = [self._find(src[rows]), self._find(tgt[rows])]
            rules.append(sides[0][0] | sides[1][0])
            is_left = ~np.asarray(rules[-1].any(axis=(1, 2)))
            for _, (texts, keys) in sides:
                inside |= self._short.sentences(keys[is_left[texts]])
        return LeakMatches(rules=np.concatenate(rules), inside=inside)

    def _find(self, texts: Sequence[str]) -> tuple[Matches, tuple[Rows, Rows]]:
        """Return (texts, rules, sets) of `LeakMatches.rules`, and (text, key) of short sentences inside."""
        config, points = self.config, fold(texts)
        matches = {EXACT: self._exact.find(text_keys(texts))}
        if config.normal_form:
            matches[NORMAL_FORM] = self._normal.find(text_keys(near_forms(texts, points)))
        ngrams = list(words_of(points).ngrams_up_to(max(config.ngram_words, self._short.longest)))
        if config.ngrams:
            matches[NGRAMS] = self._ngrams.find(ngrams[config.ngram_words - 1], len(texts))
        inside = self._short.find(ngrams[: self._short.longest])
        return np.stack([matches[rule] for rule in config.rules], axis=1), inside


@dataclass(frozen=True, eq=False)
class ShortSentences:
    """Keys of sentences of a few words: each is the n-gram of all its words."""

    keys: NDArray[np.uint64]
    """(keys,) sorted."""

    numbers: Rows
    """(sentences,) the number of each sentence's key; -1 for a sentence that is long or has no words."""

    longest: int
    """Most words of a sentence, at least 1."""

    @classmethod
    def of(cls, words: Words, sentences: int) -> ShortSentences:
        """Index the words of short sentences, which are numbered as in `words.texts`."""
        sizes = np.bincount(words.texts, minlength=sentences)
        longest = max(1, int(sizes.max(initial=0)))
        keys, numbers = np.zeros(sentences, dtype=np.uint64), np.full(sentences, -1)
        for size, ngrams in enumerate(words.ngrams_up_to(longest), start=1):
            whole = ngrams.take(sizes[ngrams.texts] == size)
            keys[whole.texts] = whole.keys
        distinct, numbers[sizes > 0] = np.unique(keys[sizes > 0], return_inverse=True)
        return cls(distinct, numbers, longest)

    @cached_property
    def _table(self) -> NDArray[np.bool_]:
        return first_bits_table(self.keys)

    def find(self, ngrams: Iterable[Words]) -> tuple[Rows, Rows]:
        """Return texts with a sentence among their n-grams, and the number of its key: (matches,) each."""
        texts, numbers = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for of_size in ngrams:
            likely = of_size.take(self._table[first_bits(of_size.keys)])
            if len(likely):
                places = np.minimum(np.searchsorted(self.keys, likely.keys), len(self.keys) - 1)
                is_there = self.keys[places] == likely.keys
                texts.append(likely.texts[is_there])
                numbers.append(places[is_there])
        return np.concatenate(texts), np.concatenate(numbers)

    def sentences(self, keys: Rows) -> NDArray[np.bool_]:
        """Return which sentences have one of these numbers of keys: (sentences,)."""
        is_there = np.zeros(len(self.keys) + 1, dtype=np.bool_)  # the last for sentences without a key
        is_there[keys] = True
        return is_there[self.numbers]


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
