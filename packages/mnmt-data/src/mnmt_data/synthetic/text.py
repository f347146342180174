"""Words as rows of bytes, ready to be laid side by side as lines of text."""

from __future__ import annotations

from itertools import chain, cycle, islice, product

import numpy as np
from numpy.typing import NDArray

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


def word_bytes(spellings: NDArray[np.int64], syllable_bytes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Each spelling as text, a space after every syllable: (words, length · syllable width) bytes."""
    return syllable_bytes[spellings].reshape(len(spellings), -1)


def text_lines(words: NDArray[np.int64], spelled: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Sentences as text, syllables separated by single spaces.

    Args:
        words: (sentences, longest) row numbers of `spelled`, then `concepts.NO_WORD` in shorter sentences.
        spelled: (words, width) from `word_bytes`.

    Returns:
        (sentences, bytes of the longest line): every line ends with a newline; NUL fills up the shorter ones.
    """
    blank = np.zeros_like(spelled[:1])
    lines = np.take(np.concatenate([spelled, blank]), words.ravel(), axis=0).reshape(len(words), -1)
    ends = (words >= 0).sum(axis=1) * spelled.shape[1]
    lines[np.arange(len(lines)), ends - 1] = ord("\n")
    return lines


def filled_up(lines: NDArray[np.uint8], width: int) -> NDArray[np.uint8]:
    """The same lines, `width` bytes wide."""
    return np.pad(lines, ((0, 0), (0, width - lines.shape[1])))


def text_bytes(lines: NDArray[np.uint8]) -> bytes:
    """The text of some lines, without what fills them up."""
    text: NDArray[np.uint8] = lines[lines != 0]
    return text.tobytes()
