"""Which pairs of a training corpus become dev and test sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mnmt_data.counter_rng import Words, mix, stream_key

Rows = NDArray[np.int64]


def side_of(task: str, tasks: Sequence[str]) -> str:
    """`src` or `tgt`: the side whose sentences decide which pairs of a task are held out.

    It is the side in the language that more of the tasks have, the first of several. So tasks with the same
    sentences there (n-way corpora, both directions of a pair) hold out the same ones.

    Args:
        task: One of the tasks, or a zero-shot one.
        tasks: Those that are trained on.
    """
    counts = Counter(language for other in tasks for language in other.split("-"))
    order = [language for language, _ in counts.most_common()]
    src, tgt = ((order.index(code) if code in order else len(order), code) for code in task.split("-"))
    return "tgt" if tgt < src else "src"


def places(keys: Words, seed: int) -> Words:
    """Where a seeded order has each sentence: a 64-bit hash of its key, the same wherever the sentence is."""
    return mix(keys ^ stream_key(seed, "held out")[0])


@dataclass
class Ends:
    """The rows at the beginning (the test set) and the end (the dev set) of the seeded order of a corpus.

    Rows come in parts; no more than the sets and one part are held. Rows of one place are in their own order.
    """

    sizes: dict[str, int]
    """{"test" or "dev": rows}, only those to take."""

    _taken: dict[str, tuple[Words, Rows]] = field(default_factory=dict, init=False)

    def add(self, places: Words, rows: Rows) -> None:
        """Look at more rows, each with its place."""
        for split, size in self.sizes.items():
            before = self._taken.get(split, (np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)))
            values = [np.concatenate(both) for both in zip(before, (places, rows), strict=True)]
            order = np.lexsort((values[1], values[0]))
            ends = order[:size] if split == "test" else order[max(len(order) - size, 0) :]
            self._taken[split] = (values[0][ends], values[1][ends])

    def rows(self, split: str) -> Rows:
        """(size,) the rows of a set, rising."""
        return np.sort(self._taken[split][1])
