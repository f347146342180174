"""Sort rows by several columns of integers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


def order_by(*keys: Numbers) -> Numbers:
    """Return the order by the first key, ties by the second, and so on, and last by position.

    The result is that of `np.lexsort(keys[::-1])`. Keys and position are packed into one word if they fit, as
    lengths of sentences do, since numpy sorts words with vector instructions.

    Args:
        keys: (n,) each, not negative.

    Returns:
        (n,) positions.
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
