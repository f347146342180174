"""Cutting pairs into batches of nearly equal numbers of tokens, with little padding."""

from __future__ import annotations

from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]


def cut(src_lengths: Rows, tgt_lengths: Rows, parts: int) -> list[Rows]:
    """Cut pairs into exactly `parts` parts of alike lengths and nearly equal numbers of tokens.

    The pairs are laid in strips by target length, in each strip by source length, and cut where the tokens
    so far pass each share.

    Args:
        src_lengths: (n,) source lengths.
        tgt_lengths: (n,) target lengths.
        parts: At most n.

    Returns:
        The pairs' numbers, part by part; none is empty, and every pair is in one.

    Raises:
        ValueError: If there are fewer pairs than parts.
    """
    if parts > len(src_lengths):
        raise ValueError(f"`parts` must be at most the number of pairs ({len(src_lengths)}), but is {parts}.")
    order = _in_strips(src_lengths, tgt_lengths, strips=ceil(sqrt(2 * parts)))
    tokens = (src_lengths + tgt_lengths)[order]
    ends = np.cumsum(tokens)
    shares = ends[-1] * np.arange(1, parts) / parts
    return np.split(order, _apart(np.searchsorted(ends - tokens / 2, shares), len(order)))


def _in_strips(src_lengths: Rows, tgt_lengths: Rows, *, strips: int) -> Rows:
    """The pairs by strip, and in each by source length."""
    by_target = np.lexsort((src_lengths, tgt_lengths))
    ends = np.cumsum((src_lengths + tgt_lengths)[by_target])
    strip = np.empty_like(by_target)
    strip[by_target] = (ends - 1) * strips // max(1, int(ends[-1]))
    return np.lexsort((tgt_lengths, src_lengths, strip))


def _apart(cuts: Rows, size: int) -> Rows:
    """The cuts moved as little as needed for every part to hold something."""
    steps = np.arange(1, len(cuts) + 1)
    rising = np.maximum.accumulate(np.maximum(cuts - steps, 0)) + steps
    return np.minimum(rising, size - steps[::-1])
