"""Find rows of parallel text whose sides are shifted against each other, as by a line that one side lacks.

Each source is compared with its own target and with the targets up to three rows before and after it: by
length, and by the numbers, names and marks that both have. A row gains from an offset as far as the shifted
target fits better. In aligned text gains are negative, in shifted text positive, and where nothing can be
compared they cancel out.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from math import log

import numpy as np
from numpy.typing import NDArray

from mnmt_data.filters.pair_filters import MARGIN, widths

OFFSETS = (-3, -2, -1, 1, 2, 3)
"""Rows from a source to the targets with which it is compared."""

CHARACTERS = 500
"""Characters of a side in which numbers, names and marks are looked for."""

LARGEST_GAIN = 2.0
"""Bound of a row's gain, so that no single row decides."""

_SPREAD = 0.2
"""Difference of the sides' log widths from its median that weighs as much as a mark of one row in three."""

_MOST_SPREADS = 4.0
_ANCHOR = re.compile(r"\d+|[^\W\d_]+|[?!:;%()\[\]{}<>/=+&@#*\"|\\]")

LEAST_SUM = 15.0
"""Gains of a shifted stretch, at least: of a dozen rows. Aligned text of 60 language pairs stays below."""

LEAST_Z = 4.6
"""Standard errors by which they are above 0, at least. Unrelated text stays below."""

LEAST_Z_OPPOSITE = 3.0
"""Standard errors by which they are above those of the opposite offset, at least."""

UNRELATED_Z = 3.0
"""Standard errors by which own targets fit better than others, at least, unless the sides are unrelated."""

UNRELATED_ROWS = 500
"""Rows of a stretch that is unrelated, at least: in 500 entries of a dictionary own targets already show."""

Gains = NDArray[np.float32]
"""(offsets, rows) what each row gains from an offset, in [-`LARGEST_GAIN`, `LARGEST_GAIN`]."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Shift:
    """A stretch of rows that fit other targets better than their own."""

    offset: int
    """Rows from a source to the target that fits it."""

    rows: slice
    """The stretch."""


def offset_gains(src: Sequence[str], tgt: Sequence[str]) -> Gains:
    """Return the gains of consecutive normalised pairs; 0 where there is no target at an offset."""
    rows = _Rows.of(src, tgt)
    unshifted = rows.fits(0)
    gains = np.zeros((len(OFFSETS), len(src)), dtype=np.float32)
    for number, offset in enumerate(OFFSETS):
        places = slice(max(0, -offset), max(0, len(src) - max(0, offset)))
        gains[number, places] = np.clip(rows.fits(offset) - unshifted[places], -LARGEST_GAIN, LARGEST_GAIN)
    return gains


def find_shift(gains: Gains) -> Shift | None:
    """Return the first stretch of rows that is shifted; None if there is none.

    Where several offsets gain in the same rows, as among sentences that are alike, it is by the best of them.
    """
    first = None
    while (shift := _best_shift(gains)) is not None:
        first, gains = shift, gains[:, : shift.rows.start]
    return first


def _best_shift(gains: Gains) -> Shift | None:
    """Return the stretch that gains most, of those that gain enough."""
    best, most = None, LEAST_SUM
    for number, offset in enumerate(OFFSETS):
        rows = _largest_stretch(gains[number])
        stretch, opposite = gains[number, rows], gains[OFFSETS.index(-offset), rows]
        total = float(stretch.sum())
        if total >= most and _z(stretch) >= LEAST_Z and _z(stretch - opposite) >= LEAST_Z_OPPOSITE:
            best, most = Shift(offset=offset, rows=rows), total
    return best


def unrelated_rows(gains: Gains) -> slice | None:
    """Return the rows from the first to the last stretch of `UNRELATED_ROWS` whose sides are unrelated.

    Sources fit their own targets there no better than others. None if there is no such stretch, or if one
    that is shifted explains it; repeated rows say nothing.
    """
    count = gains.shape[1] // UNRELATED_ROWS
    bounds = np.linspace(0, gains.shape[1], count + 1).astype(int).tolist() if count else []
    stretches = [slice(*both) for both in pairwise(bounds)]
    unrelated = [rows for rows in stretches if _is_unrelated(gains[:, rows])]
    return slice(unrelated[0].start, unrelated[-1].stop) if unrelated else None


def _is_unrelated(gains: Gains) -> bool:
    return 2 * np.count_nonzero(gains.any(axis=0)) > gains.shape[1] and _z(-gains.mean(axis=0)) < UNRELATED_Z


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """What is compared of some pairs."""

    widths: tuple[Floats, Floats]
    """(rows,) of each side: log widths, those of the target less the median difference."""
    anchors: tuple[list[frozenset[str]], list[frozenset[str]]]
    """The numbers, words and marks of each row that occur on both sides."""
    weights: dict[str, float]
    """{anchor: -log of the share of rows with it}, without anchors of half of the rows."""

    @classmethod
    def of(cls, src: Sequence[str], tgt: Sequence[str]) -> _Rows:
        one, other = np.log(widths(src) + MARGIN), np.log(widths(tgt) + MARGIN)
        anchors = tuple([frozenset(_ANCHOR.findall(_fold(text))) for text in side] for side in (src, tgt))
        first, second = (Counter(chain.from_iterable(side)) for side in anchors)
        counts = {anchor: max(first[anchor], second[anchor]) for anchor in first.keys() & second.keys()}
        weights = {anchor: log(len(src) / count) for anchor, count in counts.items() if 2 * count < len(src)}
        known = weights.keys()
        return cls(
            widths=(one, other - np.median(other - one) if len(src) else other),
            anchors=([row & known for row in anchors[0]], [row & known for row in anchors[1]]),
            weights=weights,
        )

    def fits(self, offset: int) -> Floats:
        """Return how well each source fits the target at an offset: (rows that have such a target,)."""
        src, tgt = slice(max(0, -offset), None), slice(max(0, offset), None)
        count = max(0, len(self.widths[0]) - abs(offset))
        apart = np.abs(self.widths[0][src][:count] - self.widths[1][tgt][:count]) / _SPREAD
        pairs = zip(self.anchors[0][src], self.anchors[1][tgt], strict=False)
        common = (sum(map(self.weights.__getitem__, one & other)) for one, other in pairs)
        return np.fromiter(common, np.float64, count) - np.minimum(apart, _MOST_SPREADS)


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text[:CHARACTERS]).casefold()


def _largest_stretch(gains: NDArray[np.float32]) -> slice:
    """Return the stretch with the largest sum (Kadane's algorithm by cumulated sums)."""
    sums = np.concatenate(([0.0], np.cumsum(gains, dtype=np.float64)))
    stop = int((sums - np.minimum.accumulate(sums)).argmax())
    return slice(int(sums[: stop + 1].argmin()), stop)


def _z(gains: NDArray[np.float32]) -> float:
    """Return the sum in standard errors, if the mean is 0."""
    return float(gains.sum() / max(np.sqrt(np.square(gains).sum()), 1e-9))
