"""How a synthetic language orders the words of a sentence."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from mnmt_data.counter_rng import random_words, stream_key

WordOrder: TypeAlias = Literal["same", "reversed", "permuted"]
WORD_ORDERS: tuple[str, ...] = get_args(WordOrder)


def word_orders(order: WordOrder, longest: int, *, seed: int, language: str) -> NDArray[np.int64]:
    """Which source word stands at each place of the target, for every length of sentence.

    Returns:
        (longest + 1, longest): row n is a permutation of the first n places and leaves the others alone.
    """
    orders = np.tile(np.arange(longest), (longest + 1, 1))
    for length in range(1, longest + 1):
        if order == "reversed":
            orders[length, :length] = orders[length, :length][::-1].copy()
        elif order == "permuted":
            key = stream_key(seed, "order", language, length)
            orders[length, :length] = random_words(key, 0, length).argsort()
    return orders


def reordered(
    words: NDArray[np.int64], lengths: NDArray[np.int64], orders: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Sentences (n, longest) of the given `lengths` (n,) in the orders of `word_orders`."""
    return np.take_along_axis(words, orders[lengths], axis=1)
