"""Batches of sources of similar length, by tokens."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BATCH_TOKENS = 4096
"""Source tokens of a batch, where nothing else is said."""


def cut_batches(lengths: NDArray[np.int64], *, batch_tokens: int) -> list[NDArray[np.int64]]:
    """Cut sources into batches, the longest first.

    Args:
        lengths: `(n,)` tokens of each source.
        batch_tokens: Tokens of a batch, padding included; a longer source is a batch alone.

    Returns:
        The sources' numbers, batch by batch.
    """
    order = np.argsort(-lengths, kind="stable")
    batches, start = [], 0
    while start < len(order):
        count = max(1, batch_tokens // int(lengths[order[start]]))
        batches.append(order[start : start + count])
        start += count
    return batches
