"""Texts that are similar to one of a few sentences by MinHash, estimated by the library datasketch."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh32_intdigest

from mnmt_data.errors import DataError, missing_extra

PERMUTATIONS = 128
"""Hashes of a signature: the similarity is then right to about 0.04."""

SHINGLE = 5
"""Letters of a shingle."""


_HIGHEST_THRESHOLD = 0.95
"""Of the tables, which need several bands of hashes; what they find is compared in any case."""


def import_datasketch() -> ModuleType:
    """Import the library.

    Raises:
        DataError: If it is not installed.
    """
    try:
        import datasketch
    except ImportError:
        raise DataError(f"[data.leaks] `minhash` {missing_extra('minhash')}.") from None
    library: ModuleType = datasketch
    return library


class MinHashIndex:
    """Signatures of some sentences, in tables by which similar ones are found (LSH)."""

    def __init__(self, forms: Sequence[str], sets: NDArray[np.bool_], similarity: float) -> None:
        """Index sentences.

        Args:
            forms: Their near forms.
            sets: (sentences, sets) the sets that each is in.
            similarity: The least Jaccard similarity to find.

        Raises:
            DataError: If datasketch is not installed.
        """
        self._sets = sets
        self._similarity = similarity
        # A candidate too many costs a comparison, one too few is a copy that stays.
        self._tables = import_datasketch().MinHashLSH(
            threshold=min(similarity, _HIGHEST_THRESHOLD), num_perm=PERMUTATIONS, weights=(0.1, 0.9)
        )
        self._signatures = [_signature(form) for form in forms]
        for number, signature in enumerate(self._signatures):
            self._tables.insert(number, signature)

    def find(self, forms: Sequence[str]) -> NDArray[np.bool_]:
        """Return the sets with a sentence like each text, which is given by its near form: (texts, sets)."""
        matches = np.zeros((len(forms), self._sets.shape[1]), dtype=np.bool_)
        for row, form in enumerate(forms):
            signature = _signature(form)
            for number in self._tables.query(signature):
                if signature.jaccard(self._signatures[number]) >= self._similarity:
                    matches[row] |= self._sets[number]
        return matches


def _signature(form: str) -> Any:
    from datasketch import MinHash

    signature = MinHash(num_perm=PERMUTATIONS, seed=1, hashfunc=xxh32_intdigest)
    signature.update_batch(
        [form[start : start + SHINGLE].encode() for start in range(max(len(form) - SHINGLE + 1, 1))]
    )
    return signature
