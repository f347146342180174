"""Find repeated pairs among more pairs than fit in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import numpy as np
from numpy.typing import NDArray

from mnmt_data.filters.keys import among

_CHUNK_ROWS = 2**22
_SCRAMBLE = np.uint64(0x9E3779B97F4A7C15)
"""Odd, so that multiplication permutes the keys; the high bits then depend on all others."""

Keys = NDArray[np.uint64]
Mask = NDArray[np.bool_]
Slices = NDArray[np.int64]
"""(slices, 2) stretches of a file of keys: the first key of each, and the number of keys."""


def first_occurrences(
    keys: Keys, *, out: Mask | None = None, folder: Path | None = None, memory_rows: int = 2**23
) -> Mask:
    """Return whether each key occurs for the first time, counted from row 0.

    More than `memory_rows` keys are divided by their (scrambled) high bits into partitions of that size in a
    temporary file. Time is linear in the number of keys, and memory is constant. A partition that is larger
    because one key occurs very often is processed in pieces of `memory_rows`.

    Args:
        keys: `(n,)`; an array or a memory map, which is never read as a whole.
        out: `(n,)`, an array or a memory map for the result; by default a new array.
        folder: Folder for temporary files of 9 bytes a key; by default the system's.
        memory_rows: Most rows compared at once, at some 80 bytes each: 700 MB for 2^23.

    Returns:
        `(n,)`, False where an earlier row has the same key.

    Raises:
        ValueError: If `memory_rows` is not positive.
    """
    if memory_rows < 1:
        raise ValueError(f"`memory_rows` must be at least 1, but is {memory_rows}.")
    first = np.empty(len(keys), dtype=np.bool_) if out is None else out
    if len(keys) <= memory_rows:
        first[:] = next(_new_keys([np.asarray(keys)]))
        return first
    partitions, step = len(keys) // memory_rows + 1, min(_CHUNK_ROWS, memory_rows)
    with TemporaryFile(dir=folder) as values, TemporaryFile(dir=folder) as answers:
        slices = _divide(keys, partitions, step, values)
        for number in range(partitions):
            _answer(slices[:, number], memory_rows, values, answers)
        _collect(keys, partitions, step, answers, first)
    return first


def _divide(keys: Keys, partitions: int, step: int, values: IO[bytes]) -> Slices:
    """Write each chunk of keys ordered by partition; return the slices: (chunks, partitions, 2)."""
    slices = []
    for start in range(0, len(keys), step):
        chunk = np.asarray(keys[start : start + step])
        numbers = _partition(chunk, partitions)
        values.write(chunk[np.argsort(numbers, kind="stable")].tobytes())
        counts = np.bincount(numbers, minlength=partitions)
        slices.append(np.stack((start + np.cumsum(counts) - counts, counts), axis=1))
    return np.stack(slices)


def _answer(slices: Slices, memory_rows: int, values: IO[bytes], answers: IO[bytes]) -> None:
    """Write whether each key of a partition occurs for the first time, at the position of the key."""
    pieces = list(_pieces(slices, memory_rows))
    for piece, new in zip(pieces, _new_keys(_read(values, piece) for piece in pieces), strict=True):
        for (start, _), part in zip(piece, np.split(new, np.cumsum(piece[:-1, 1])), strict=True):
            answers.seek(start)
            answers.write(part.tobytes())


def _collect(keys: Keys, partitions: int, step: int, answers: IO[bytes], first: Mask) -> None:
    """Reorder the answers from the order of partitions to the order of the keys."""
    answers.seek(0)
    for start in range(0, len(keys), step):
        chunk = np.asarray(keys[start : start + step])
        order = np.argsort(_partition(chunk, partitions), kind="stable")
        first[start + order] = np.frombuffer(answers.read(len(chunk)), dtype=np.bool_)


def _partition(keys: Keys, partitions: int) -> NDArray[np.unsignedinteger]:
    """Return the number of each key's partition: its scrambled high half, scaled to `partitions`."""
    high = (keys * _SCRAMBLE) >> np.uint64(32)
    numbers = (high * np.uint64(partitions)) >> np.uint64(32)
    return numbers.astype(np.min_scalar_type(partitions))  # numpy sorts 16 bits by radix


def _pieces(slices: Slices, memory_rows: int) -> Iterator[Slices]:
    """Yield the slices of a partition, at most `memory_rows` keys at a time."""
    start = rows = 0
    for number, count in enumerate(slices[:, 1].tolist()):
        if rows + count > memory_rows:
            yield slices[start:number]
            start, rows = number, 0
        rows += count
    yield slices[start:]


def _read(values: IO[bytes], slices: Slices) -> Keys:
    """Read the keys of some slices, one after the other."""
    keys = np.empty(slices[:, 1].sum(), dtype=np.uint64)
    for (start, count), end in zip(slices.tolist(), np.cumsum(slices[:, 1]).tolist(), strict=True):
        values.seek(keys.itemsize * start)
        keys[end - count : end] = np.frombuffer(values.read(keys.itemsize * count), dtype=np.uint64)
    return keys


def _new_keys(pieces: Iterable[Keys]) -> Iterator[Mask]:
    """Yield for each piece the mask of keys that occur neither earlier in it nor in an earlier piece."""
    earlier = np.empty(0, dtype=np.uint64)
    for keys in pieces:
        values, places = _first_rows(keys)
        new = ~among(values, earlier)
        first = np.zeros(len(keys), dtype=np.bool_)
        first[places[new]] = True
        yield first
        earlier = np.sort(np.concatenate((earlier, values[new])))


def _first_rows(keys: Keys) -> tuple[Keys, NDArray[np.int64]]:
    """Return the distinct keys, sorted, and the first row of each; `np.unique` takes twice as long."""
    order = np.argsort(keys)
    ordered = keys[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))[: len(keys)])
    return ordered[starts], np.minimum.reduceat(order, starts) if len(keys) else order
