"""How long sentences are, and how much longer one is than its translation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from unicodedata import east_asian_width

import numpy as np
from numpy.typing import NDArray

from mnmt_data.filters.code_points import code_points, table

WIDE_CHARACTER = 2.5
"""Letters that a Chinese, Japanese or Korean character stands for: translations from English then come out at
0.8 to 1.2 times its length, those into other scripts at 1.0 to 1.2."""

MARGIN = 10
"""Characters added to either side before their ratio is taken: "OK" may well be "Einverstanden"."""


def characters(texts: Sequence[str]) -> NDArray[np.int64]:
    """`(texts,)`: characters of each."""
    return np.fromiter(map(len, texts), np.int64, len(texts))


def widths(texts: Sequence[str]) -> NDArray[np.float64]:
    """`(texts,)`: characters of each, a wide one (Unicode's `East_Asian_Width` W or F) `WIDE_CHARACTER`.

    Unlike bytes of UTF-8 this takes the letters of every alphabet for equal.
    """
    lengths = characters(texts)
    wide = np.flatnonzero(_wide()[code_points("".join(texts))])
    wide_until_end = np.searchsorted(wide, np.cumsum(lengths))
    return np.asarray(lengths + (WIDE_CHARACTER - 1) * np.diff(wide_until_end, prepend=0))


def length_ratios(src: Sequence[str], tgt: Sequence[str]) -> NDArray[np.float64]:
    """`(pairs,)`: (longer + `MARGIN`) / (shorter + `MARGIN`) of the sides' widths; at least 1."""
    one, other = widths(src) + MARGIN, widths(tgt) + MARGIN
    return np.asarray(np.maximum(one, other) / np.minimum(one, other))


@cache
def _wide() -> NDArray[np.bool_]:
    return table(east_asian_width, "WF")
