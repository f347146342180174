"""Random numbers and shuffled orders computed from a key and a position, without state."""

from __future__ import annotations

from hashlib import blake2b
from math import isqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = NDArray[np.uint64]

_WORDS_PER_COUNT = 4


def stream_key(seed: int, *labels: str | int) -> Words:
    """Return the 128-bit key of a stream; streams of other labels or seeds are independent."""
    plain = [label if isinstance(label, str) else int(label) for label in labels]  # int: numpy's repr differs
    digest = blake2b(repr((int(seed), *plain)).encode(), digest_size=16).digest()
    return np.frombuffer(digest, dtype="<u8").astype(np.uint64)


def random_words(key: Words, start: int, count: int) -> Words:
    """Return words `start` to `start + count` of a stream: Philox 4x64-10 (Salmon et al. 2011).

    Returns:
        (count,) uniform 64-bit words, a pure function of the key and of each word's position.
    """
    counter, skip = divmod(start, _WORDS_PER_COUNT)
    words: Words = np.random.Philox(key=key, counter=counter).random_raw(skip + count)
    return words[skip:]


def random_units(key: Words, start: int, count: int) -> NDArray[np.float64]:
    """Return (count,) uniform numbers in [0, 1) with 53 random bits, from `random_words`."""
    return np.ldexp((random_words(key, start, count) >> np.uint64(11)).astype(np.float64), -53)


def random_order(key: Words, count: int) -> NDArray[np.int64]:
    """Return range(`count`) in a random order: sorted by the first words of a stream, ties by place."""
    words = random_words(key, 0, count)
    order = words.argsort()  # a stable sort takes several times as long, and ties are rare
    ordered = words[order]
    return words.argsort(kind="stable") if (ordered[1:] == ordered[:-1]).any() else order


def mix(words: Words) -> Words:
    """Return a 64-bit hash of each word: the finaliser of SplitMix64 (Steele et al. 2014), a bijection."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


MAX_SIZE = 2**62
_ROUNDS = 12  # even, so that the moduli end in place; fewer leave ranges below ten visibly uneven


def permute(
    positions: NDArray[np.int64], size: int, key: Words, *, epochs: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Permute positions in range(`size`) at random; every epoch has its own permutation.

    A Feistel network on pairs of residues modulo a and b, with a·b just above `size`, repeated on images
    outside the range until they are inside (Black and Rogaway 2002, "Ciphers with arbitrary finite domains").

    Args:
        positions: (n,) positions in [0, size).
        size: Number of positions, in [1, 2**62].
        key: (2,) from `stream_key`.
        epochs: (n,) the number of the permutation for each position.

    Returns:
        (n,) images in [0, size).
    """
    if not 1 <= size <= MAX_SIZE:
        raise ValueError(f"`size` must be in [1, 2**62], but is {size}.")
    tweaks = mix(epochs.astype(np.uint64) + key[0]) ^ key[1]
    images = _feistel(positions.astype(np.uint64), size, tweaks)
    while (outside := np.flatnonzero(images >= np.uint64(size))).size:
        images[outside] = _feistel(images[outside], size, tweaks[outside])
    return images.astype(np.int64)


def epoch_rows(draws: NDArray[np.int64], size: int, key: Words, *, block_rows: int = 1) -> NDArray[np.int64]:
    """Return the row of each draw k; epoch k // size visits each of `size` rows once, in its own order.

    Blocks of `block_rows` consecutive rows come in random order, rows within a block in sequence, and the
    rows after the last whole block at the end of each epoch.

    Args:
        draws: (n,) from 0.
        size: Rows.
        key: (2,) from `stream_key`.
        block_rows: Rows of a block.

    Returns:
        (n,) rows in [0, size).
    """
    epochs, positions = np.divmod(draws, size)
    if block_rows == 1:
        return permute(positions, size, key, epochs=epochs)
    blocks, places = np.divmod(positions, block_rows)
    whole = np.flatnonzero(blocks < size // block_rows)
    if whole.size:
        images = permute(blocks[whole], size // block_rows, key, epochs=epochs[whole])
        positions[whole] = images * block_rows + places[whole]
    return positions


def _feistel(numbers: Words, size: int, tweaks: Words) -> Words:
    """Pass numbers once through the network over [0, a·b), where a·b >= size and a·b - size < a."""
    a = isqrt(size - 1) + 1
    b = -(-size // a)
    right_modulus, left_modulus = np.uint64(b), np.uint64(a)
    left = numbers // right_modulus
    right = numbers - left * right_modulus
    # (left, right) becomes (right, (left + f(right)) mod a), which can be undone: each round is a bijection.
    for round_ in range(_ROUNDS):
        mixed = mix(right + tweaks + np.uint64(round_ << 32))
        sums = left + _remainder(mixed, left_modulus)
        # (sums mod a): below the modulus, the unsigned difference wraps around to more than the sum.
        left, right = right, np.minimum(sums, sums - left_modulus)
        left_modulus, right_modulus = right_modulus, left_modulus
    return left * right_modulus + right


def _remainder(words: Words, modulus: np.uint64) -> Words:
    """Return words % modulus by numpy's division, which is several times faster than its remainder."""
    return words - words // modulus * modulus
