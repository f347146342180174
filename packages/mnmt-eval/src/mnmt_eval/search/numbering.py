"""The numbers of a vocabulary's tokens with padding at 0 and the end of a sentence at 1."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mnmt_eval.search.protocol import EOS, PAD


@dataclass(frozen=True, kw_only=True)
class Numbering:
    """The numbers of a model's tokens in searches; at most four of them are not the model's own."""

    size: int
    """The number of tokens."""
    pad: int
    """The model's number of padding."""
    eos: int
    """The model's number of the end of a sentence."""

    @cached_property
    def to_model(self) -> NDArray[np.int64]:
        """`(size,)` the model's number of each token."""
        order = np.arange(self.size)
        for ours, theirs in ((PAD, self.pad), (EOS, self.eos)):
            place = int(np.flatnonzero(order == theirs)[0])
            order[[ours, place]] = order[[place, ours]]
        return order

    @cached_property
    def to_search(self) -> NDArray[np.int64]:
        """`(size,)` the number in searches of each of the model's tokens."""
        return self.to_model.argsort()

    @cached_property
    def moved(self) -> NDArray[np.int64]:
        """The tokens whose number is not the model's own."""
        return np.flatnonzero(self.to_model != np.arange(self.size))

    def search_ids(self, ids: Iterable[int]) -> NDArray[np.int64]:
        """Return the numbers in searches of the model's tokens."""
        return self.to_search[np.fromiter(ids, dtype=np.int64)]

    def model_ids(self, ids: Iterable[int]) -> list[int]:
        """Return the model's numbers of tokens of a search."""
        numbers: list[int] = self.to_model[np.fromiter(ids, dtype=np.int64)].tolist()
        return numbers
