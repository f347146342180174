"""Endless sentences of concepts from a Zipf law, without overlap between splits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mnmt_data.counter_rng import mix, random_units, stream_key

SPLITS = ("train", "dev", "test")

_BLOCK = 2**15
_SHARES = 64


def zipf_probabilities(concepts: int, exponent: float) -> NDArray[np.float64]:
    """Return the probability of each concept, the commonest first: p_k ∝ k^(-exponent), (concepts,)."""
    frequencies: NDArray[np.float64] = np.power(np.arange(1, concepts + 1, dtype=np.float64), -exponent)
    return frequencies / float(frequencies.sum())


def concept_sentences(
    probabilities: NDArray[np.float64], length: int, *, split: str, task: str, seed: int
) -> Iterator[NDArray[np.int64]]:
    """Yield blocks of independent concepts, (sentences, length): a pure function of (seed, split, task).

    A keyed hash of its concepts assigns 1/64 of all possible sentences to `dev`, 1/64 to `test` and the
    others to `train`, so that no split contains a sentence of another, in any task. With few possible
    sentences the splits do overlap: see `splits_are_disjoint`.

    Args:
        probabilities: (concepts,), summing to 1.
        length: Words of a sentence.
        split: One of `SPLITS`.
        task: The task, such as `xx-aa`.
        seed: Seed of the sentences.
    """
    cumulative = np.cumsum(probabilities)
    cumulative /= cumulative[-1]
    key, block = stream_key(seed, "concepts", split, task), 0
    disjoint = splits_are_disjoint(probabilities, length)
    while True:
        units = random_units(key, block * _BLOCK * length, _BLOCK * length).reshape(_BLOCK, length)
        sentences = np.searchsorted(cumulative, units, side="right")
        yield sentences[_in_split(sentences, split, seed)] if disjoint else sentences
        block += 1


def splits_are_disjoint(probabilities: NDArray[np.float64], words: int) -> bool:
    """Return whether the splits are disjoint: the probability of every sentence is below 1/4096.

    To exclude a more common sentence from a split would change the distribution of its words.
    """
    return bool(probabilities.max() ** words < 1 / 4096)


def _in_split(sentences: NDArray[np.int64], split: str, seed: int) -> NDArray[np.bool_]:
    hashes = np.full(len(sentences), stream_key(seed, "splits")[0])
    for column in sentences.T:
        hashes = mix(hashes ^ column.astype(np.uint64))
    shares = hashes % np.uint64(_SHARES)
    held_out = SPLITS.index(split) - 1
    return shares >= np.uint64(len(SPLITS) - 1) if held_out < 0 else shares == np.uint64(held_out)
