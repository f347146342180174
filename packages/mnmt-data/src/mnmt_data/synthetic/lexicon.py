"""Spell concepts, and write the lines of text of a synthetic language."""

from __future__ import annotations

from itertools import chain, cycle, islice, product
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from mnmt_data.counter_rng import permute, random_units, random_words, stream_key

_COMMON = "*"  # not the name of a language
_GOLDEN = (sqrt(5) - 1) / 2


def unique_spellings(
    concepts: int,
    *,
    length: int,
    inventory: int,
    seed: int,
    language: str,
    shared: NDArray[np.bool_] | None = None,
) -> NDArray[np.int64]:
    """Draw distinct random spellings of all concepts.

    Args:
        concepts: Number of concepts.
        length: Syllables of each word.
        inventory: Syllables to choose from; inventory^length words, at least one for each concept.
        seed: Seed of the spellings.
        language: The language.
        shared: (concepts,) whether a concept has the same spelling in every language; by default none has.

    Returns:
        (concepts, length) syllable numbers in [0, inventory).
    """
    numbers = _word_numbers(concepts, inventory**length, seed, language)
    if shared is not None and shared.any():
        numbers = _join_numbers(numbers, _word_numbers(concepts, inventory**length, seed, _COMMON), shared)
    return numbers[:, None] // inventory ** np.arange(length) % inventory


def shared_concepts(concepts: int, share: float, *, seed: int) -> NDArray[np.bool_]:
    """Return which concepts all target languages spell alike: (concepts,).

    The k-th commonest is shared if the fractional part of u + kφ is below `share`, with φ the golden ratio
    and u drawn from `seed`. No sequence is spread more evenly: any m consecutive ranks hold m·share ± O(log
    m) of them, where independent draws would deviate by √m. A larger share contains a smaller one.
    """
    start = random_units(stream_key(seed, "shared lexicon"), 0, 1)
    return (start + np.arange(concepts) * _GOLDEN) % 1.0 < share


def synonyms(
    spellings: NDArray[np.int64],
    *,
    inventory: int,
    seed: int,
    language: str,
    shared: NDArray[np.bool_] | None = None,
) -> NDArray[np.int64]:
    """Return the second spellings, with other last syllables; same shape as `spellings`."""
    steps = _synonym_steps(len(spellings), inventory, seed, language)
    if shared is not None:
        steps = np.where(shared, _synonym_steps(len(spellings), inventory, seed, _COMMON), steps)
    second = spellings.copy()
    second[:, -1] = (spellings[:, -1] + steps) % inventory
    return second


def _word_numbers(concepts: int, words: int, seed: int, language: str) -> NDArray[np.int64]:
    """Return a different number in [0, words) for each concept."""
    key = stream_key(seed, "spelling", language)
    return permute(np.arange(concepts), words, key, epochs=np.zeros(concepts, dtype=np.int64))


def _join_numbers(
    private: NDArray[np.int64], common: NDArray[np.int64], shared: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return `common` where `shared`, else `private`, with all numbers distinct.

    If a shared concept takes the private word of another, that one gets the private word of the shared
    concept, and so on until a word is free. Two such chains never meet, since every step is one-to-one.
    """
    owners = np.flatnonzero(shared)[common[shared].argsort()]
    common_numbers, numbers = common[owners], np.where(shared, common, private)
    moving = np.flatnonzero(~shared)
    while moving.size:
        positions = np.searchsorted(common_numbers, numbers[moving]).clip(max=len(common_numbers) - 1)
        collides = common_numbers[positions] == numbers[moving]
        moving = moving[collides]
        numbers[moving] = private[owners[positions[collides]]]
    return numbers


def _synonym_steps(concepts: int, inventory: int, seed: int, language: str) -> NDArray[np.int64]:
    """Draw the distances between the last syllables of both spellings, in [1, inventory)."""
    draws = random_words(stream_key(seed, "synonym", language), 0, concepts) % np.uint64(inventory - 1)
    return 1 + draws.astype(np.int64)


_CONSONANTS, _VOWELS = "bdfghjklmnprstvz", "aeiou"


def syllables(count: int) -> NDArray[np.uint8]:
    """Return the first `count` syllables, each followed by a space: (count, width) ASCII bytes of one width.

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
    """Return each spelling as text, a space after every syllable: (words, length · syllable width) bytes."""
    return syllable_bytes[spellings].reshape(len(spellings), -1)


def text_lines(words: NDArray[np.int64], spelled: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return sentences as text, syllables separated by single spaces.

    Args:
        words: (sentences, length) row numbers of `spelled`.
        spelled: (words, width) from `word_bytes`.

    Returns:
        (sentences, length · width) bytes; every line ends with a newline.
    """
    lines = np.take(spelled, words.ravel(), axis=0).reshape(len(words), -1)
    lines[:, -1] = ord("\n")
    return lines
