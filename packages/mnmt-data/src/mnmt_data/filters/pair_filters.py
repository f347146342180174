"""Filters that judge each pair by itself, over whole blocks of normalised pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mnmt_data.filters.lengths import characters, length_ratios

Drops = NDArray[np.bool_]
"""`(pairs,)`, True where a pair is to be dropped."""


class PairFilter(Protocol):
    """One filter, its settings included; pickled when workers are processes."""

    def __call__(self, src: Sequence[str], tgt: Sequence[str]) -> Drops:
        """Which pairs to drop."""


def empty(src: Sequence[str], tgt: Sequence[str]) -> Drops:
    """Drop pairs with a side that has no character."""
    return np.asarray(np.minimum(characters(src), characters(tgt)) == 0)


def identical(src: Sequence[str], tgt: Sequence[str]) -> Drops:
    """Drop pairs whose sides are equal."""
    return np.fromiter((one == other for one, other in zip(src, tgt, strict=True)), np.bool_, len(src))


@dataclass(frozen=True)
class TooLong:
    """Drops pairs with a side of more than `max_characters`."""

    max_characters: int

    def __call__(self, src: Sequence[str], tgt: Sequence[str]) -> Drops:
        """Which pairs to drop."""
        return np.asarray(np.maximum(characters(src), characters(tgt)) > self.max_characters)


@dataclass(frozen=True)
class Ratio:
    """Drops pairs of which one side is more than `max_ratio` times as long as the other."""

    max_ratio: float

    def __call__(self, src: Sequence[str], tgt: Sequence[str]) -> Drops:
        """Which pairs to drop."""
        return np.asarray(length_ratios(src, tgt) > self.max_ratio)
