"""Rows of different lengths in one array: the form that token ids have on disk and in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False)
class Ragged:
    """Rows of different lengths in one array.

    Raises:
        ValueError: If the offsets leave `values`; `check` tests whether they rise.
    """

    values: NDArray[np.integer]
    """(total,) the rows, one after the other."""

    offsets: NDArray[np.int64]
    """(rows + 1,) row i is values[offsets[i]:offsets[i + 1]]."""

    def __post_init__(self) -> None:
        offsets, total = self.offsets, len(self.values)
        if not (len(offsets) and 0 <= offsets[0] <= offsets[-1] <= total):
            raise ValueError(f"`offsets` must rise from 0 to at most the number of `values` ({total}).")

    def check(self) -> None:
        """Check that all offsets rise; `__post_init__` does not, since there may be a billion.

        Raises:
            ValueError: If an offset is less than the one before it.
        """
        if (falls := np.flatnonzero(np.diff(self.offsets) < 0)).size:
            raise ValueError(f"`offsets` must rise, but fall after row {falls[0]}.")

    @classmethod
    def from_rows(cls, rows: Sequence[NDArray[np.integer]]) -> Self:
        """Put rows one after the other."""
        lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        values = np.concatenate(rows) if rows else np.empty(0, dtype=np.uint16)
        return cls(values, offsets_of(lengths))

    @classmethod
    def concatenate(cls, parts: Sequence[Ragged]) -> Ragged:
        """Concatenate the rows of one or more parts; a single part is returned as it is."""
        if len(parts) == 1:
            return parts[0]
        lengths = np.concatenate([part.lengths for part in parts])
        values = np.concatenate([part.values[part.offsets[0] : part.offsets[-1]] for part in parts])
        return cls(values, offsets_of(lengths))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> NDArray[np.integer]:
        """Return one row, as a view."""
        if not -len(self) <= row < len(self):
            raise IndexError(f"`row` must be one of {len(self)} rows, but is {row}.")
        row %= len(self)
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(rows,) the length of each row."""
        return self.offsets[1:] - self.offsets[:-1]

    def lengths_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the lengths of the given rows: (len(rows),)."""
        return self.offsets[rows + 1] - self.offsets[rows]

    def take(self, rows: NDArray[np.int64]) -> Ragged:
        """Return the given rows, copied one after the other.

        Arrow copies each row as a byte string, several times faster than numpy indexes token by token.

        Raises:
            ValueError: If the offsets of one do not rise, or leave `values`.
        """
        starts, ends = self.offsets[rows], self.offsets[rows + 1]
        if len(rows) and (starts.min() < 0 or (ends < starts).any() or ends.max() > len(self.values)):
            raise ValueError(f"`offsets` of every row must rise, to at most {len(self.values)}.")
        # Arrow sees 2n + 1 strings of bytes between 2n + 2 bounds. String 2i + 1 is
        # values[starts[i]:ends[i]]; string 2i is the gap before it, which is never taken and so may end
        # before it begins.
        offsets = offsets_of(ends - starts)
        bounds = np.zeros(2 * len(rows) + 2, dtype=np.int64)
        bounds[1:-1:2], bounds[2:-1:2] = starts, ends
        bounds[-1] = min(2 * offsets[-1], len(self.values))  # Arrow reserves about half of this span
        bounds *= self.values.itemsize
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(np.ascontiguousarray(self.values))]
        strings = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(bounds) - 1, buffers)
        strings = pc.take(strings, pa.array(np.arange(1, len(bounds) - 1, 2)), boundscheck=False)
        values = np.frombuffer(strings.buffers()[2], dtype=self.values.dtype, count=int(offsets[-1]))
        return Ragged(values, offsets)

    def padded(self, rows: NDArray[np.int64] | slice, *, pad: int = 0) -> NDArray[np.int64]:
        """Return the given rows, filled with `pad` to the longest: (rows, length of the longest)."""
        part = self._part(rows) if isinstance(rows, slice) else self.take(rows)
        lengths = part.lengths
        width = int(lengths.max(initial=0))
        # True at column j of row i where j < lengths[i]: row by row, these cells are the values in order.
        table = np.full((len(lengths), width), pad, dtype=np.int64)
        table[np.arange(width) < lengths[:, None]] = part.values[part.offsets[0] : part.offsets[-1]]
        return table

    def _part(self, rows: slice) -> Ragged:
        """Return consecutive rows, as views."""
        start, stop, _ = rows.indices(len(self))
        return Ragged(self.values, self.offsets[start : max(start, stop) + 1])


def offsets_of(lengths: ArrayLike) -> NDArray[np.int64]:
    """Return the offsets of consecutive rows with these lengths: (rows + 1,)."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
