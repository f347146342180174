"""Translations that are much shorter than the training pairs let expect."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

QUANTILE = 0.001
"""The share of training pairs whose target is shorter than the least length."""

CLASS_PAIRS = 2000
"""The pairs of a class of similar source length: enough for two of them to be below the quantile."""

SHORTEST_SOURCE = 12
"""The bytes of a source below which only an empty translation is too short: `OK` translates anything."""

Bytes = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class LeastLengths:
    """The least ratio of target to source length, in bytes of UTF-8, for sources of each length.

    The ratio varies less in characters than in words (Gale and Church 1993) or tokens, and most for short
    sources. Bytes vary as characters do, and are known of every token of the training pairs.
    """

    sources: NDArray[np.float64]
    """`(classes,)` the least source length of each class, rising from 0."""
    ratios: NDArray[np.float64]
    """`(classes,)` the least ratio of its pairs."""

    @classmethod
    def of_pairs(cls, src: Bytes, tgt: Bytes) -> Self:
        """Return the quantiles of some pairs' ratios, in classes of similar source length.

        Args:
            src: `(pairs,)` source lengths in bytes.
            tgt: `(pairs,)` target lengths.
        """
        src = np.maximum(src, 1)
        order = np.argsort(src, kind="stable")
        classes = np.array_split(order, max(1, len(order) // CLASS_PAIRS))
        return cls(
            sources=np.array([0.0, *(src[rows[0]] for rows in classes[1:])]),
            ratios=np.array([np.quantile(tgt[rows] / src[rows], QUANTILE) for rows in classes]),
        )

    @classmethod
    def least_of(cls, several: Iterable[LeastLengths]) -> Self:
        """Return the least ratios among several, of which there is at least one."""
        several = list(several)
        sources = np.unique(np.concatenate([each.sources for each in several]))
        return cls(sources=sources, ratios=np.min([each.ratio(sources) for each in several], axis=0))

    def ratio(self, sources: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """Return the least ratio for sources of some lengths in bytes."""
        return self.ratios[np.searchsorted(self.sources, sources, side="right") - 1]

    def is_short(self, source: str, translation: str) -> bool:
        """Return whether a translation is much shorter than expected of its source."""
        src, tgt = num_bytes(source), num_bytes(translation)
        least = float(self.ratio(src)) * src if src >= SHORTEST_SOURCE else 0.0
        return tgt < max(least, min(src, 1))


def num_bytes(text: str) -> int:
    """Return the bytes of a text in UTF-8, with one for any white space between words."""
    return len(" ".join(text.split()).encode())
