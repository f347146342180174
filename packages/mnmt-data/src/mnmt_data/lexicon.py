"""How a synthetic language spells its concepts: words as rows of bytes, ready to be laid side by side."""

from __future__ import annotations

from itertools import chain, cycle, islice, product

import numpy as np
from numpy.typing import NDArray

from mnmt_data.draws import random_words, stream_key
from mnmt_data.permutation import permute

_CONSONANTS, _VOWELS = "bdfghjklmnprstvz", "aeiou"


def syllables(count: int) -> NDArray[np.uint8]:
    """The first `count` syllables, each followed by a space: (count, width) ASCII bytes of one width.

    Syllables alternate consonants and vowels (ba, be, …) and are as short as `count` distinct ones allow.
    """
    length, available = 2, len(_CONSONANTS) * len(_VOWELS)
    while available < count:
        available *= len((_CONSONANTS, _VOWELS)[length % 2])
        length += 1
    letters = islice(cycle((_CONSONANTS, _VOWELS)), length)
    text = "".join(chain.from_iterable((*letters_, " ") for letters_ in islice(product(*letters), count)))
    return np.frombuffer(text.encode(), dtype=np.uint8).reshape(count, length + 1)


def unique_spellings(
    concepts: int, *, length: int, inventory: int, seed: int, language: str
) -> NDArray[np.int64]:
    """A random spelling of its own for every concept.

    Returns:
        (concepts, length) syllable numbers in [0, inventory), no two rows alike. There must be as many
        words, inventory^length.
    """
    key = stream_key(seed, "spelling", language)
    numbers = permute(np.arange(concepts), inventory**length, key, epochs=np.zeros(concepts, dtype=np.int64))
    return numbers[:, None] // inventory ** np.arange(length) % inventory


def synonyms(spellings: NDArray[np.int64], *, inventory: int, seed: int, language: str) -> NDArray[np.int64]:
    """Every concept's second spelling: the first with another last syllable; same shape as `spellings`."""
    draws = random_words(stream_key(seed, "synonym", language), 0, len(spellings)) % np.uint64(inventory - 1)
    second = spellings.copy()
    second[:, -1] = (spellings[:, -1] + 1 + draws.astype(np.int64)) % inventory
    return second


def word_bytes(spellings: NDArray[np.int64], syllable_bytes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Each spelling as text, a space after every syllable: (words, length · syllable width) bytes."""
    return syllable_bytes[spellings].reshape(len(spellings), -1)


def text_lines(words: NDArray[np.int64], spelled: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Sentences as text, syllables separated by single spaces.

    Args:
        words: (sentences, words a sentence) row numbers of `spelled`.
        spelled: (words, width) from `word_bytes`.

    Returns:
        (sentences, bytes a line): every line ends with a newline, and all are of one length.
    """
    lines = np.take(spelled, words.ravel(), axis=0).reshape(len(words), -1)
    lines[:, -1] = ord("\n")
    return lines
