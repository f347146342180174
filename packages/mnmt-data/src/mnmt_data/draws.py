"""Random numbers addressed by position: any stretch of a stream, from its key and start, with no state."""

from __future__ import annotations

from hashlib import blake2b
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = NDArray[np.uint64]

_WORDS_PER_COUNT = 4


def stream_key(seed: int, *labels: str | int) -> Words:
    """The 128-bit key of the stream that `labels` name under `seed`; other labels, independent streams."""
    plain = [label if isinstance(label, str) else int(label) for label in labels]  # int: numpy's repr differs
    digest = blake2b(repr((int(seed), *plain)).encode(), digest_size=16).digest()
    return np.frombuffer(digest, dtype="<u8").astype(np.uint64)


def random_words(key: Words, start: int, count: int) -> Words:
    """Words `start` to `start + count` of a stream: Philox 4x64-10 (Salmon et al. 2011) at that counter.

    Returns:
        (count,) uniform 64-bit words, a pure function of the key and of each word's position.
    """
    counter, skip = divmod(start, _WORDS_PER_COUNT)
    words: Words = np.random.Philox(key=key, counter=counter).random_raw(skip + count)
    return words[skip:]


def random_units(key: Words, start: int, count: int) -> NDArray[np.float64]:
    """As `random_words`, as (count,) uniform numbers in [0, 1) with 53 random bits."""
    return np.ldexp((random_words(key, start, count) >> np.uint64(11)).astype(np.float64), -53)


def mix(words: Words) -> Words:
    """A 64-bit hash of each word: the finaliser of SplitMix64 (Steele et al. 2014), a bijection."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
