"""Filters of single pairs, applied to whole blocks of normalised pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol
from unicodedata import east_asian_width

import numpy as np
from numpy.typing import NDArray

from mnmt_data.filters.normalise import code_points, table

WIDE_CHARACTER = 2.5
"""Letters that a Chinese, Japanese or Korean character counts for: translations from English then have 0.8 to
1.2 times its length, and translations into other scripts 1.0 to 1.2."""

MARGIN = 10
"""Characters added to either side in ratios, since "OK" may be translated as "Einverstanden"."""


def characters(texts: Sequence[str]) -> NDArray[np.int64]:
    """Return the number of characters of each text: `(texts,)`."""
    return np.fromiter(map(len, texts), np.int64, len(texts))


def widths(texts: Sequence[str]) -> NDArray[np.float64]:
    """Return the width of each text, in which wide characters (W or F) count `WIDE_CHARACTER`: `(texts,)`.

    Unlike UTF-8 bytes, this measures the letters of every alphabet equally.
    """
    lengths = characters(texts)
    wide = np.flatnonzero(_wide()[code_points("".join(texts))])
    wide_until_end = np.searchsorted(wide, np.cumsum(lengths))
    return np.asarray(lengths + (WIDE_CHARACTER - 1) * np.diff(wide_until_end, prepend=0))


def length_ratios(src: Sequence[str], tgt: Sequence[str]) -> NDArray[np.float64]:
    """Return (longer + `MARGIN`) / (shorter + `MARGIN`) of the sides' widths, at least 1: `(pairs,)`."""
    one, other = widths(src) + MARGIN, widths(tgt) + MARGIN
    return np.asarray(np.maximum(one, other) / np.minimum(one, other))


@cache
def _wide() -> NDArray[np.bool_]:
    return table(east_asian_width, "WF")


Drops = NDArray[np.bool_]
"""`(pairs,)`, True where a pair is to be dropped."""


class PairFilter(Protocol):
    """One filter with its settings; it can be pickled."""

    def __call__(self, src: Sequence[str], tgt: Sequence[str]) -> Drops:
        """Return which pairs to drop."""


def empty(src: Sequence[str], tgt: Sequence[str]) -> Drops:
    """Drop pairs with an empty side."""
    return np.asarray(np.minimum(characters(src), characters(tgt)) == 0)


def identical(src: Sequence[str], tgt: Sequence[str]) -> Drops:
    """Drop pairs whose sides are equal."""
    return np.fromiter((one == other for one, other in zip(src, tgt, strict=True)), np.bool_, len(src))


@dataclass(frozen=True)
class TooLong:
    """Drops pairs with a side of more than `max_characters`."""

    max_characters: int

    def __call__(self, src: Sequence[str], tgt: Sequence[str]) -> Drops:
        """Return which pairs to drop."""
        return np.asarray(np.maximum(characters(src), characters(tgt)) > self.max_characters)


@dataclass(frozen=True)
class Ratio:
    """Drops pairs with a side more than `max_ratio` times as long as the other."""

    max_ratio: float

    def __call__(self, src: Sequence[str], tgt: Sequence[str]) -> Drops:
        """Return which pairs to drop."""
        return np.asarray(length_ratios(src, tgt) > self.max_ratio)
