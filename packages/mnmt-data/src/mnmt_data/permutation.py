"""Shuffled orders that are computed, not stored: where a permutation sends a position, in constant time."""

from __future__ import annotations

from math import isqrt

import numpy as np
from numpy.typing import NDArray

from mnmt_data.draws import Words, mix

MAX_SIZE = 2**62
_ROUNDS = 12  # even, to end with the moduli in place; with fewer, ranges of less than ten are visibly uneven


def permute(
    positions: NDArray[np.int64], size: int, key: Words, *, epochs: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Where a random permutation of range(`size`) sends each position; every epoch has its own permutation.

    A Feistel network on pairs of residues modulo a and b, with a·b just above `size`, repeated on what lands
    outside until it lands inside (Black and Rogaway 2002, "Ciphers with arbitrary finite domains").

    Args:
        positions: (n,) positions in [0, size).
        size: The number of things permuted, in [1, 2**62].
        key: (2,) from `draws.stream_key`.
        epochs: (n,) which permutation of the key's family each position belongs to.

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


def epoch_rows(draws: NDArray[np.int64], size: int, key: Words) -> NDArray[np.int64]:
    """The rows that draws k read: epoch k // size visits each of `size` rows once, in an order of its own."""
    epochs, positions = np.divmod(draws, size)
    return permute(positions, size, key, epochs=epochs)


def _feistel(numbers: Words, size: int, tweaks: Words) -> Words:
    """One pass of the network over [0, a·b), where a·b >= size and a·b - size < a."""
    a = isqrt(size - 1) + 1
    b = -(-size // a)
    right_modulus, left_modulus = np.uint64(b), np.uint64(a)
    left, right = np.divmod(numbers, right_modulus)
    for round_ in range(_ROUNDS):
        mixed = mix(right + tweaks + np.uint64(round_ << 32))
        left, right = right, (left + mixed % left_modulus) % left_modulus
        left_modulus, right_modulus = right_modulus, left_modulus
    return left * right_modulus + right
