"""Sentences of dev and test sets, which must not be trained on."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from mnmt_data.filters.keys import among, text_keys
from mnmt_data.filters.normalise import Form, normalise

_CHUNK_ROWS = 2**22


def held_out_keys(texts: Iterable[str], *, normalisation: Form = "NFC") -> NDArray[np.uint64]:
    """The keys of held-out sentences, each once, sorted.

    Args:
        texts: Sentences of either side of dev and test sets, as their files give them.
        normalisation: The form in which the training text is, `CleanConfig.normalisation`.
    """
    return np.unique(text_keys([normalise(text, normalisation) for text in texts]))


def is_held_out(
    src_keys: NDArray[np.uint64], tgt_keys: NDArray[np.uint64], held_out: NDArray[np.uint64]
) -> NDArray[np.bool_]:
    """Whether either side of each pair is a held-out sentence.

    Args:
        src_keys: `(n,)`, keys of source sentences; an array or a memory map, which is read piece by piece.
        tgt_keys: `(n,)`, keys of target sentences.
        held_out: Keys as `held_out_keys` gives them: sorted, each once.

    Returns:
        `(n,)`, True where a pair must not be trained on.
    """
    found = np.zeros(len(src_keys), dtype=np.bool_)
    for first in range(0, len(src_keys), _CHUNK_ROWS):
        rows = slice(first, first + _CHUNK_ROWS)
        found[rows] = among(src_keys[rows], held_out) | among(tgt_keys[rows], held_out)
    return found
