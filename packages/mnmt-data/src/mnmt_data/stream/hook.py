"""A function of the user's that changes the pairs of every batch: tags, casing, a sampled segmentation."""

from __future__ import annotations

import importlib
import pkgutil
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from inspect import getsourcefile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mnmt_data.errors import DataError, one_line
from mnmt_data.store.prepared import PreparedData
from mnmt_data.store.ragged import Ragged
from mnmt_data.store.vocabulary import Vocabulary

Tokens = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class DrawnPairs:
    """The pairs that a hook may change, of some consecutive batches."""

    src: list[Tokens]
    """Token ids of each source, with target tag and `</s>`."""

    tgt: list[Tokens]
    """Token ids of each target, with `</s>`."""

    tasks: list[str]
    """The task of each pair."""

    keys: NDArray[np.uint64]
    """(pairs,) a random number for each pair: a function of seed, step and pair, whoever reads it."""

    vocab: Vocabulary
    """The vocabulary, for `Vocabulary.recode` and others."""


HookFunction = Callable[[DrawnPairs], tuple[Sequence[Any], Sequence[Any]]]
"""Returns sources and targets, as many as there are pairs, in their order; must draw by `keys` alone."""


@dataclass(frozen=True, kw_only=True)
class BatchHook:
    """A function on the pairs of each batch, before they are cut into batches by their lengths.

    A pair that has no token on a side, or more than `max_length`, stays as it was.
    """

    name: str
    """Module and function, joined by a colon; a saved stream knows the hook by this name."""

    function: HookFunction
    vocab: Vocabulary
    max_length: int
    """The most tokens of a side."""

    @classmethod
    def load(cls, name: str, data: PreparedData) -> BatchHook:
        """Import a hook by its name, also from the working directory.

        Raises:
            DataError: If there is no such function.
        """
        if (folder := str(Path.cwd())) not in sys.path:
            sys.path.append(folder)
        try:
            function = pkgutil.resolve_name(name)
        except Exception as error:  # of the user's module
            raise DataError(
                f"[train.mixing] `hook`: {name} cannot be imported ({_reason(error)})."
            ) from error
        if not callable(function):
            raise DataError(f"[train.mixing] `hook`: {name} must be a function, but is {function!r}.")
        return cls(name=name, function=function, vocab=data.vocab, max_length=data.max_length)

    @property
    def code(self) -> str:
        """A digest of the file with the function; empty where there is none."""
        try:
            file = getsourcefile(self.function)
        except TypeError:
            file = None
        return sha256(Path(file).read_bytes()).hexdigest()[:16] if file and Path(file).is_file() else ""

    def __call__(
        self, src: Ragged, tgt: Ragged, tasks: list[str], keys: NDArray[np.uint64]
    ) -> tuple[Ragged, Ragged]:
        """Return the pairs as the function changes them.

        Raises:
            DataError: If it fails, or returns another number of pairs, or ids that the vocabulary lacks.
        """
        sides = [[side[row].astype(np.int64) for row in range(len(side))] for side in (src, tgt)]
        pairs = DrawnPairs(src=sides[0], tgt=sides[1], tasks=tasks, keys=keys, vocab=self.vocab)
        try:
            changed = [[np.asarray(row) for row in side] for side in self.function(pairs)]
        except Exception as error:
            raise DataError(f"{self.name}: {_reason(error)}.") from error
        if [len(side) for side in changed] != [len(tasks)] * 2:
            counts = " and ".join(str(len(side)) for side in changed)
            raise DataError(f"{self.name}: must return {len(tasks)} sources and targets, not {counts}.")
        if any(row.ndim != 1 for side in changed for row in side):
            raise DataError(f"{self.name}: each source and target must have one dimension.")
        rows = [
            new if all(0 < len(row) <= self.max_length for row in new) else old
            for old, new in zip(zip(*sides, strict=True), zip(*changed, strict=True), strict=True)
        ]
        results = [Ragged.from_rows([row[side] for row in rows]) for side in (0, 1)]
        for result in results:
            self._check_ids(result.values)
        return results[0], results[1]

    def _check_ids(self, ids: NDArray[Any]) -> None:
        """Check that ids are whole numbers of the vocabulary, and none is padding."""
        if not np.issubdtype(ids.dtype, np.integer):
            raise DataError(f"{self.name}: must return whole numbers, not {ids.dtype}.")
        if ids.size and not 0 < ids.min() <= ids.max() < self.vocab.size:
            what = f"must return ids from 1 to {self.vocab.size - 1}"
            raise DataError(f"{self.name}: {what}, but returns {ids.min()} to {ids.max()}.")


def _reason(error: Exception) -> str:
    """Describe in one line what went wrong in a user's code, and where in it."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = (__file__, pkgutil.__file__, importlib.__file__)
    places = [f"{frame.filename}:{frame.lineno}" for frame in frames if frame.filename not in ours]
    where = [f", {place}" for place in places if place[0] != "<"]
    return f"{type(error).__name__}: {one_line(error)}{''.join(where[-1:])}"
