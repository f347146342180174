"""Text as letters and words, without case, digits and punctuation: what is left of it in near copies."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from mnmt_data.counter_rng import mix
from mnmt_data.filters.normalise import code_points, table, text_of

SEPARATOR = "\n"
"""Between texts, and between the sides of a pair: no normalised text holds it."""

_BASE = np.uint64(0x9E3779B97F4A7C15)
_UNSPACED = ((0x0E00, 0x10A0), (0x1780, 0x1800), (0x1950, 0x1AB0), (0xA9E0, 0xAA80))
"""Blocks of Thai, Lao, Tibetan, Burmese, Khmer and Tai letters, from the first to before the last."""

Points = NDArray[np.uint32]
"""Code points of several texts, with a `SEPARATOR` between two."""


def fold(texts: Sequence[str]) -> Points:
    """Return the code points of normalised texts, NFKC and without case: (characters,)."""
    nfkc = (unicodedata.normalize("NFKC", text).casefold() for text in texts)
    return code_points(SEPARATOR.join(unicodedata.normalize("NFKC", text) for text in nfkc))


def letters_of(points: Points) -> list[str]:
    """Return the letters of each folded text and the marks on them, and nothing else."""
    return text_of(points[_letters().take(points) | (points == ord(SEPARATOR))]).split(SEPARATOR)


@dataclass(frozen=True, eq=False)
class Words:
    """The words of some texts, or stretches of several words, as 64-bit hashes in their order."""

    keys: NDArray[np.uint64]
    """(words,) the hash of each; two different words share one with probability 2^-64."""

    texts: NDArray[np.int64]
    """(words,) the number of the text that each is in, rising."""

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, rows: NDArray[np.bool_]) -> Words:
        """Return the words where `rows`, (words,), is True."""
        return Words(self.keys[rows], self.texts[rows])

    def ngrams(self, n: int) -> Words:
        """Return every stretch of `n` words of one text."""
        count = max(len(self) - n + 1, 0)
        keys = self.keys[:count]
        for place in range(1, n):
            keys = mix(keys) + self.keys[place : place + count]
        is_one_text = self.texts[:count] == self.texts[n - 1 : n - 1 + count]
        return Words(keys, self.texts[:count]).take(is_one_text)


def words_of(points: Points) -> Words:
    """Return the words of folded texts: stretches of letters.

    Where a script puts no space between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese, Tibetan, also
    Korean syllables), every letter is a word.
    """
    places = np.flatnonzero(_letters().take(points))
    letters = points[places]
    alone = _stand_alone().take(letters)
    begins = alone | np.concatenate(([True], alone[:-1] | (np.diff(places) > 1)))[: len(letters)]
    starts = np.flatnonzero(begins)
    ends = np.searchsorted(places[starts], np.flatnonzero(points == ord(SEPARATOR)))
    texts = np.repeat(np.arange(len(ends) + 1), np.diff(ends, prepend=0, append=len(starts)))
    return Words(_hashes(letters, starts), texts)


def _hashes(letters: Points, starts: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the hash of each word, sum over its letters of letter · base^(1 + place in the word), mixed.

    The powers run on through all words; the first one of each is divided out again.
    """
    if not len(starts):
        return np.empty(0, dtype=np.uint64)
    # Σ_i letter_i · base^(1 + i) over a word's places i, times base^-start: the same at any place.
    powers, inverses = _powers(len(letters).bit_length())
    sums = np.add.reduceat(letters * powers[: len(letters)], starts)
    return mix(sums * inverses[starts])


@lru_cache(maxsize=4)
def _powers(bits: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return base^(1 + i) and base^-i modulo 2^64 for i below 2^`bits`."""
    inverse = np.uint64(pow(int(_BASE), -1, 2**64))
    powers, inverses = (np.multiply.accumulate(np.full(2**bits, base)) for base in (_BASE, inverse))
    return powers, inverses * _BASE


@cache
def _letters() -> NDArray[np.bool_]:
    """Return whether each code point is a letter or a mark on one: `(code points,)`."""
    return table(lambda character: unicodedata.category(character)[0], "LM")


@cache
def _stand_alone() -> NDArray[np.bool_]:
    """Return whether each code point, if it is a letter, is a word by itself: `(code points,)`."""
    alone = table(unicodedata.east_asian_width, "WF")
    for first, end in _UNSPACED:
        alone[first:end] = True
    return alone
