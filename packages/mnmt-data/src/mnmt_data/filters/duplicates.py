"""Pairs that occur again, and pairs with a held-out sentence, among more of them than fit in memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mnmt_data.filters.keys import among

_CHUNK_ROWS = 2**22
_SCRAMBLE = np.uint64(0x9E3779B97F4A7C15)
"""Odd, so that multiplying by it permutes the keys; the high bits then depend on all others."""


def first_occurrences(keys: NDArray[np.uint64], *, memory_rows: int = 2**23) -> NDArray[np.bool_]:
    """Return whether each key occurs for the first time, counted from row 0.

    The keys are cut into partitions of about `memory_rows` rows by their (scrambled) high bits; each takes
    one pass over all keys, chunk by chunk. A partition that holds more rows all the same, because one key
    occurs very often, is taken in pieces of `memory_rows`. 10^8 keys take 16 s on one core.

    Args:
        keys: `(n,)`; an array or a memory map, which is never read as a whole.
        memory_rows: Most rows compared at once, at some 80 bytes each: 700 MB for 2^23.

    Returns:
        `(n,)`, False where an earlier row has the same key.

    Raises:
        ValueError: If `memory_rows` is not positive.
    """
    if memory_rows < 1:
        raise ValueError(f"`memory_rows` must be at least 1, but is {memory_rows}.")
    first = np.zeros(len(keys), dtype=np.bool_)
    partitions = -(-len(keys) // memory_rows)
    for partition in range(partitions):
        earlier = np.empty(0, dtype=np.uint64)
        for rows, piece in _pieces(keys, partition, partitions, memory_rows):
            values, places = _first_rows(piece)
            new = ~among(values, earlier)
            first[rows[places[new]]] = True
            earlier = np.sort(np.concatenate((earlier, values[new])))
    return first


def _pieces(
    keys: NDArray[np.uint64], partition: int, partitions: int, memory_rows: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint64]]]:
    """Yield the row numbers and keys of a partition, at most `memory_rows` at a time."""
    step = min(_CHUNK_ROWS, memory_rows)
    rows: list[NDArray[np.int64]] = []
    piece: list[NDArray[np.uint64]] = []
    for start in range(0, len(keys), step):
        chunk = np.asarray(keys[start : start + step])
        places = np.flatnonzero(_partition(chunk, partitions) == partition)
        if sum(map(len, rows)) + len(places) > memory_rows:
            yield np.concatenate(rows), np.concatenate(piece)
            rows, piece = [], []
        rows.append(start + places)
        piece.append(chunk[places])
    if any(map(len, rows)):
        yield np.concatenate(rows), np.concatenate(piece)


def _partition(keys: NDArray[np.uint64], partitions: int) -> NDArray[np.uint64]:
    """Return the number of each key's partition: its scrambled high half, scaled to `partitions`."""
    high = (keys * _SCRAMBLE) >> np.uint64(32)
    return (high * np.uint64(partitions)) >> np.uint64(32)


def _first_rows(keys: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the distinct keys, sorted, and the first row of each; `np.unique` takes twice as long."""
    order = np.argsort(keys)
    ordered = keys[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    return ordered[starts], np.minimum.reduceat(order, starts)


def is_held_out(
    src_keys: NDArray[np.uint64], tgt_keys: NDArray[np.uint64], held_out: NDArray[np.uint64]
) -> NDArray[np.bool_]:
    """Return whether either side of each pair is a held-out sentence.

    Args:
        src_keys: `(n,)`, keys of source sentences; an array or a memory map, which is read piece by piece.
        tgt_keys: `(n,)`, keys of target sentences.
        held_out: Keys of held-out sentences, sorted, each once.

    Returns:
        `(n,)`, True where a pair must not be trained on.
    """
    held_out_rows = np.zeros(len(src_keys), dtype=np.bool_)
    for first in range(0, len(src_keys), _CHUNK_ROWS):
        rows = slice(first, first + _CHUNK_ROWS)
        held_out_rows[rows] = among(src_keys[rows], held_out) | among(tgt_keys[rows], held_out)
    return held_out_rows
