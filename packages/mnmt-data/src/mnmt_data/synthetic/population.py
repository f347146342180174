"""A whole distribution of sentences as a list with weights, so that a loss over it is a weighted mean.

All combinations of words would be too many. The list has a few times as many sentences as there are words,
and at every position every word has exactly its probability.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]
Shares = NDArray[np.float64]

_DECIMALS = 15
"""Decimals of a cumulative share: two that should be equal are, and no sliver of rounding lies between."""


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightedPairs:
    """Sentence pairs whose weighted mean stands for a whole distribution."""

    src: NDArray[np.uint8]
    """(pairs, width) source lines (see `lexicon.text_lines`)."""

    tgt: NDArray[np.uint8]
    """(pairs, width) target lines."""

    weights: Shares
    """(pairs,) the factor of each pair's loss; 1 on average."""


def couple(shares: Shares) -> tuple[Rows, Shares]:
    """Join distributions, one a position, into a list of tuples that has each of them as its margin.

    The outcomes of every position are laid side by side on [0, 1), and the interval is cut wherever an
    outcome of any position ends. Each piece is a tuple, and its width is the tuple's weight: the north-west
    corner rule of transportation problems.

    Args:
        shares: (lists, positions, outcomes) the probabilities, which sum to 1 over the outcomes.

    Returns:
        (lists, tuples, positions) outcomes and (lists, tuples) weights, with positions · outcomes tuples in
        every list. Some weigh 0.
    """
    lists, positions, outcomes = shares.shape
    ends = shares.cumsum(axis=2)
    ends = np.round(ends / ends[:, :, -1:], _DECIMALS).reshape(lists, -1)
    order = ends.argsort(axis=1, kind="stable")
    weights = np.diff(np.take_along_axis(ends, order, axis=1), axis=1, prepend=0.0)
    ended = (order // outcomes)[:, :, None] == np.arange(positions)
    tuples = ended.cumsum(axis=1) - ended  # outcomes that ended before a piece begins
    return np.minimum(tuples, outcomes - 1), weights
