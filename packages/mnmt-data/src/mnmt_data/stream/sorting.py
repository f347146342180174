"""The order of rows by several columns of whole numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


def order_by(*keys: Numbers) -> Numbers:
    """Return the order by the first key, among equals by the second, and so on, and last by place.

    `np.lexsort(keys[::-1])` does the same. Here keys and place are packed into one word where they fit, as
    lengths of sentences do, and numpy sorts words with vector instructions.

    Args:
        keys: (n,) each, not negative.

    Returns:
        (n,) places.
    """
    # One word a row: first key | second key | … | place, the first in the highest bits.
    places = len(keys[0]).bit_length()
    packed, bits = np.arange(len(keys[0])), places
    for key in reversed(keys):
        packed |= key << bits
        bits += int(key.max(initial=0)).bit_length()
        if bits > 63:
            return np.lexsort(keys[::-1])
    packed.sort()
    return packed & ((1 << places) - 1)
