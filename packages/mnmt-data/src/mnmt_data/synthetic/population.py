"""Represent a distribution of sentences by a weighted list, so that a loss over it is a weighted mean.

There are too many combinations of words. The list is only a few times longer than the vocabulary, and every
word has exactly its probability at every position.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]
Shares = NDArray[np.float64]

_DECIMALS = 15
"""Decimals of cumulative shares: rounding makes shares equal that differ only by rounding errors."""


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightedPairs:
    """Sentence pairs whose weighted mean is that of a distribution."""

    src: NDArray[np.uint8]
    """(pairs, width) source lines (see `lexicon.text_lines`)."""

    tgt: NDArray[np.uint8]
    """(pairs, width) target lines."""

    weights: Shares
    """(pairs,) the weight of each pair's loss; 1 on average."""


def couple(shares: Shares) -> tuple[Rows, Shares]:
    """Join distributions, one for each position, into weighted tuples that have them as marginals.

    The outcomes of every position partition [0, 1), and the interval is cut at every end of an outcome of any
    position. Each piece is a tuple, and its width is the tuple's weight: the north-west corner rule of
    transportation problems.

    Args:
        shares: (lists, positions, outcomes) probabilities, which sum to 1 over the outcomes.

    Returns:
        (lists, tuples, positions) outcomes and (lists, tuples) weights, with positions · outcomes tuples in
        every list. Some have weight 0.
    """
    lists, positions, outcomes = shares.shape
    ends = shares.cumsum(axis=2)
    ends = np.round(ends / ends[:, :, -1:], _DECIMALS).reshape(lists, -1)
    order = ends.argsort(axis=1, kind="stable")
    weights = np.diff(np.take_along_axis(ends, order, axis=1), axis=1, prepend=0.0)
    ended = (order // outcomes)[:, :, None] == np.arange(positions)
    tuples = ended.cumsum(axis=1) - ended  # outcomes that ended before a piece begins
    return np.minimum(tuples, outcomes - 1), weights
