"""Caches of keys and values in decoding: of sources, computed once, and of growing targets."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from mnmt_model.transformer.attention import KeysValues

BLOCK = 8
"""Steps to allocate ahead in a cache, or half of its length if that is more."""


class _Buffer:
    """Memory for keys and values; the first `written` places of each row are used."""

    def __init__(self, keys: Tensor, values: Tensor, written: int) -> None:
        self.keys, self.values, self.written = keys, values, written

    def claim(self, start: int, end: int) -> _Buffer:
        """Reserve the places from `start` to `end`, in a larger copy if they are not free."""
        is_free = self.is_free(start, end)
        buffer = self if is_free else self._copy(start, end + max(BLOCK * (end - start), end // 2))
        buffer.written = end
        return buffer

    def is_free(self, start: int, end: int) -> bool:
        """Return whether the places from `start` to `end` exist and are not used."""
        return self.written == start and end <= self.keys.size(2)

    def _copy(self, length: int, capacity: int) -> _Buffer:
        keys, values = (_enlarge(table[:, :, :length], capacity) for table in (self.keys, self.values))
        return _Buffer(keys, values, length)


def _enlarge(table: Tensor, capacity: int) -> Tensor:
    rows, heads, length, width = table.shape
    larger = table.new_empty(rows, heads, capacity, width)
    larger[:, :, :length] = table
    return larger


@dataclass(frozen=True, kw_only=True, eq=False)
class KeyValueCache:
    """Keys and values of the tokens so far; more are appended in place.

    A cache is immutable: a second append to the same cache, as when two hypotheses continue it, copies it.
    """

    buffer: _Buffer
    length: int

    @classmethod
    def of(cls, first: KeysValues) -> KeyValueCache:
        """Return a cache with these keys and values."""
        length = first.keys.size(2)
        return cls(buffer=_Buffer(first.keys, first.values, length), length=length)

    @classmethod
    def empty(cls, like: KeysValues) -> KeyValueCache:
        """Return an empty cache with the rows of `like`."""
        return cls.of(KeysValues(keys=like.keys[:, :, :0], values=like.values[:, :, :0]))

    @property
    def keys(self) -> Tensor:
        """`(rows, num_heads, length, head_dim)`."""
        return self.buffer.keys[:, :, : self.length]

    @property
    def values(self) -> Tensor:
        """Shaped like `keys`."""
        return self.buffer.values[:, :, : self.length]

    def has_room(self, number: int) -> bool:
        """Return whether `number` more places can be appended without a copy."""
        return self.buffer.is_free(self.length, self.length + number)

    def append(self, new: KeysValues) -> KeyValueCache:
        """Return the cache with the keys and values `new` at the end of every row."""
        end = self.length + new.keys.size(2)
        buffer = self.buffer.claim(self.length, end)
        buffer.keys[:, :, self.length : end] = new.keys
        buffer.values[:, :, self.length : end] = new.values
        return KeyValueCache(buffer=buffer, length=end)

    def select(self, rows: Tensor) -> KeyValueCache:
        """Return the cache of the given rows, in their order."""
        # Whole rows, including free places, are copied faster than parts of rows.
        keys, values = (table.index_select(0, rows) for table in (self.buffer.keys, self.buffer.values))
        return KeyValueCache(buffer=_Buffer(keys, values, self.length), length=self.length)

    def take(self, places: Tensor) -> KeyValueCache:
        """Return the cache of the given places `(rows, n)` of each row, in their order."""
        rows, heads, capacity, width = self.buffer.keys.shape
        firsts = torch.arange(rows * heads, device=places.device).view(rows, heads, 1) * capacity
        cells = (firsts + places[:, None]).flatten()
        keys, values = (
            table.reshape(-1, width).index_select(0, cells).view(rows, heads, -1, width)
            for table in (self.buffer.keys, self.buffer.values)
        )
        return KeyValueCache.of(KeysValues(keys=keys, values=values))


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerCache:
    """The keys and values that one layer attends to."""

    target: KeyValueCache
    """Cache of the target tokens so far, preceded by the source tokens if `source` is None."""
    source: KeysValues | None
    """Keys and values of the sources, one row for each sentence."""
