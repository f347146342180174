"""Places of arrays in a file, from which some elements are read, with or without mapping the file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mnmt_data.store.ragged import Ragged

Source: TypeAlias = "int | pa.Buffer"
"""An open file: its descriptor, or its content mapped into memory."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """The place of an array in a file."""

    start: int
    """Bytes before it."""

    count: int
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, array: pa.Array, whole: pa.Buffer) -> Self:
        """Return the place of an array that is a view of a mapped file.

        Raises:
            ValueError: If the array is compressed.
        """
        values = array.to_numpy(zero_copy_only=True)
        start = values.ctypes.data - whole.address if values.size else 0
        if not 0 <= start <= whole.size - values.nbytes:
            raise ValueError("its arrays are compressed")
        return cls(start=start, count=values.size, dtype=values.dtype)

    def read(self, source: Source, start: int, stop: int) -> NDArray[Any]:
        """Read some elements: a copy, or a view of a mapped file.

        Raises:
            ValueError: If the array has no such elements.
        """
        if not 0 <= start <= stop <= self.count:
            raise ValueError(f"it has no elements {start} to {stop} of {self.count}")
        if start == stop:
            return np.empty(0, dtype=self.dtype)
        width, count = self.dtype.itemsize, stop - start
        first = self.start + width * start
        if isinstance(source, int):
            return np.frombuffer(os.pread(source, width * count, first), dtype=self.dtype, count=count)
        return np.frombuffer(source, dtype=self.dtype, count=count, offset=first)

    def view(self, whole: pa.Buffer) -> NDArray[Any]:
        """Return all elements, as a view of the mapped file."""
        return self.read(whole, 0, self.count)


@dataclass(frozen=True, kw_only=True)
class RaggedPlace:
    """The places of the values and the offsets of rows of different lengths."""

    values: Place
    offsets: Place

    @classmethod
    def of(cls, column: pa.ListArray, whole: pa.Buffer) -> Self:
        """Return the places of a column of lists in a mapped file.

        Raises:
            ValueError: If they are compressed.
        """
        return cls(values=Place.of(column.values, whole), offsets=Place.of(column.offsets, whole))

    def read(self, source: Source, start: int, stop: int) -> Ragged:
        """Read some consecutive rows, as `Place.read`.

        Raises:
            ValueError: If there are no such rows, or their offsets fall or leave the values.
        """
        offsets = self._offsets(source, start, stop)
        values = self.values.read(source, int(offsets[0]), int(offsets[-1]))
        rows = Ragged(values, offsets - offsets[0])
        rows.check()
        return rows

    def _offsets(self, source: Source, start: int, stop: int) -> NDArray[np.int64]:
        if start == stop:
            return np.zeros(1, dtype=np.int64)
        return self.offsets.read(source, start, stop + 1)

    def view(self, whole: pa.Buffer) -> Ragged:
        """Return all rows, as views of the mapped file."""
        if self.offsets.count < 2:
            return self.read(whole, 0, 0)
        return Ragged(self.values.view(whole), self.offsets.view(whole))
