"""64-bit hashes of texts for finding duplicates, the same on any machine and in any process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

from mnmt_data.filters.words import SEPARATOR, Points, fold, letters_of


@dataclass(frozen=True, kw_only=True)
class Keys:
    """64-bit hashes (XXH3) of normalised pairs; each field has shape `(pairs,)`, uint64.

    Two different texts have the same key with probability 2^-64. Of n different pairs about n²/2^65 are
    therefore mistaken for duplicates: 0.04 pairs of 1.2 billion. Text can be made to collide.
    """

    pair: NDArray[np.uint64]
    """Hash of both sides, equal for duplicates."""

    near: NDArray[np.uint64]
    """Hash of the near forms of both sides, equal for near duplicates; `pair` if these are not needed."""

    src: NDArray[np.uint64]
    """Hash of the source sentence."""

    tgt: NDArray[np.uint64]
    """Hash of the target sentence."""


def pair_keys(src: Sequence[str], tgt: Sequence[str], *, near: bool) -> Keys:
    """Return the keys of normalised pairs, with those of near duplicates if `near`."""
    pair = _joined_keys(src, tgt)
    return Keys(
        pair=pair,
        near=_joined_keys(near_forms(src), near_forms(tgt)) if near else pair,
        src=text_keys(src),
        tgt=text_keys(tgt),
    )


def text_keys(texts: Sequence[str]) -> NDArray[np.uint64]:
    """Return the key of each text: `(texts,)`."""
    return np.fromiter(map(xxh3_64_intdigest, map(str.encode, texts)), np.uint64, len(texts))


def among(keys: NDArray[np.uint64], candidates: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return whether each key is one of the sorted `candidates`: `(keys,)`."""
    if not len(candidates):
        return np.zeros(len(keys), dtype=np.bool_)
    positions = np.minimum(np.searchsorted(candidates, keys), len(candidates) - 1)
    return np.asarray(candidates[positions] == keys)


def near_forms(texts: Sequence[str], points: Points | None = None) -> list[str]:
    """Return the case-folded letters and combining marks of each text, NFKC, which near duplicates share.

    Digits, punctuation, symbols and spaces are removed, so that "Page 3 of 12" equals "page 4 of 12.". A text
    without any letter stays unchanged. Bifixer's `--aggressive_dedup` also removes accents, which distinguish
    words in many languages. Pairs that differ in the spelling, order or number of words are not found.

    Args:
        texts: Normalised texts.
        points: Their folded code points, if known.
    """
    if not texts:
        return []
    forms = letters_of(fold(texts) if points is None else points)
    return [form or text for form, text in zip(forms, texts, strict=True)]


def _joined_keys(src: Sequence[str], tgt: Sequence[str]) -> NDArray[np.uint64]:
    return text_keys([f"{one}{SEPARATOR}{other}" for one, other in zip(src, tgt, strict=True)])
