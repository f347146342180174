"""Text as letters and words without case, digits and punctuation, which near copies share."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from mnmt_data.counter_rng import mix
from mnmt_data.filters.normalise import code_points, table, text_of

SEPARATOR = "\n"
"""Separates texts, and the sides of a pair; no normalised text contains it."""

_BASE = np.uint64(0x9E3779B97F4A7C15)
_UNSPACED = ((0x0E00, 0x10A0), (0x1780, 0x1800), (0x1950, 0x1AB0), (0xA9E0, 0xAA80))
"""Blocks of Thai, Lao, Tibetan, Burmese, Khmer and Tai letters, as (start, stop)."""

Points = NDArray[np.uint32]
"""Code points of several texts, joined by `SEPARATOR`."""


def fold(texts: Sequence[str]) -> Points:
    """Return the code points of normalised texts, NFKC and case-folded: (characters,)."""
    nfkc = (unicodedata.normalize("NFKC", text).casefold() for text in texts)
    return code_points(SEPARATOR.join(unicodedata.normalize("NFKC", text) for text in nfkc))


def letters_of(points: Points) -> list[str]:
    """Return only the letters and combining marks of each folded text."""
    return text_of(points[_letters().take(points) | (points == ord(SEPARATOR))]).split(SEPARATOR)


@dataclass(frozen=True, eq=False)
class Words:
    """The words or n-grams of some texts, as 64-bit hashes in order."""

    keys: NDArray[np.uint64]
    """(words,) hashes; two different words collide with probability 2^-64."""

    texts: NDArray[np.int64]
    """(words,) the number of each word's text, in ascending order."""

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, rows: NDArray[np.bool_]) -> Words:
        """Return the words where `rows`, (words,), is True."""
        return Words(self.keys[rows], self.texts[rows])

    def ngrams(self, n: int) -> Words:
        """Return all n-grams within texts."""
        *_, ngrams = self.ngrams_up_to(n)
        return ngrams

    def ngrams_up_to(self, n: int) -> Iterator[Words]:
        """Yield the words, then all 2-grams, and so on up to all n-grams within texts."""
        yield self
        keys = self.keys
        for size in range(2, n + 1):
            keys = mix(keys[:-1]) + self.keys[size - 1 :]
            texts, ends = self.texts[: len(keys)], self.texts[size - 1 :]
            yield Words(keys, texts).take(texts == ends)


def words_of(points: Points) -> Words:
    """Return the words of folded texts: runs of letters.

    In scripts without spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese, Tibetan), and in Korean, every
    letter is a word.
    """
    places = np.flatnonzero(_letters().take(points))
    letters = points[places]
    is_word = _one_letter_words().take(letters)
    begins = is_word | np.concatenate(([True], is_word[:-1] | (np.diff(places) > 1)))[: len(letters)]
    starts = np.flatnonzero(begins)
    ends = np.searchsorted(places[starts], np.flatnonzero(points == ord(SEPARATOR)))
    texts = np.repeat(np.arange(len(ends) + 1), np.diff(ends, prepend=0, append=len(starts)))
    return Words(_hashes(letters, starts), texts)


def _hashes(letters: Points, starts: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the hash of each word: Σ_i letter_i · base^(1 + i) over its letters, mixed.

    One series of powers runs over all words; each word's first power is divided out.
    """
    if not len(starts):
        return np.empty(0, dtype=np.uint64)
    # Σ_i letter_i · base^(1 + i) over all places i of a word, times base^-start: the same at any place
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
    """Return whether each code point is a letter or a combining mark: `(code points,)`."""
    return table(lambda character: unicodedata.category(character)[0], "LM")


@cache
def _one_letter_words() -> NDArray[np.bool_]:
    """Return whether each code point counts as a word if it is a letter: `(code points,)`."""
    is_word = table(unicodedata.east_asian_width, "WF")
    for first, end in _UNSPACED:
        is_word[first:end] = True
    return is_word
