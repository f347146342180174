"""Keys and values that decoding remembers: of sources, made once, and of targets, which grow."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from mnmt_model.transformer.attention import KeysValues

BLOCK = 8
"""Steps for which a cache makes room ahead, or for half as many again as it holds, if that is more."""


class _Room:
    """Memory for keys and values, of which the first `written` places of each row are taken."""

    def __init__(self, keys: Tensor, values: Tensor, written: int) -> None:
        self.keys, self.values, self.written = keys, values, written

    def claim(self, start: int, end: int) -> _Room:
        """Room for the places from `start` to `end`: a larger copy of what comes before, if need be."""
        is_free = self.is_free(start, end)
        room = self if is_free else self._copy(start, end + max(BLOCK * (end - start), end // 2))
        room.written = end
        return room

    def is_free(self, start: int, end: int) -> bool:
        """Whether nobody has written the places from `start` to `end`, and there are so many."""
        return self.written == start and end <= self.keys.size(2)

    def _copy(self, length: int, capacity: int) -> _Room:
        keys, values = (_enlarged(table[:, :, :length], capacity) for table in (self.keys, self.values))
        return _Room(keys, values, length)


def _enlarged(table: Tensor, capacity: int) -> Tensor:
    rows, heads, length, width = table.shape
    larger = table.new_empty(rows, heads, capacity, width)
    larger[:, :, :length] = table
    return larger


@dataclass(frozen=True, kw_only=True, eq=False)
class GrowingCache:
    """Keys and values of what came so far, to which more are added in place.

    A cache never changes: what is added to it twice, as when two hypotheses go on from it, is copied the
    second time.
    """

    room: _Room
    length: int

    @classmethod
    def of(cls, seen: KeysValues) -> GrowingCache:
        """A cache that begins with these."""
        length = seen.keys.size(2)
        return cls(room=_Room(seen.keys, seen.values, length), length=length)

    @classmethod
    def empty(cls, like: KeysValues) -> GrowingCache:
        """A cache that holds nothing, of as many rows."""
        return cls.of(KeysValues(keys=like.keys[:, :, :0], values=like.values[:, :, :0]))

    @property
    def keys(self) -> Tensor:
        """`(rows, num_heads, length, d_head)`."""
        return self.room.keys[:, :, : self.length]

    @property
    def values(self) -> Tensor:
        """Like `keys`."""
        return self.room.values[:, :, : self.length]

    def has_room(self, new: int) -> bool:
        """Whether `new` more places can be added without a copy."""
        return self.room.is_free(self.length, self.length + new)

    def append(self, new: KeysValues) -> GrowingCache:
        """The cache with `new` of every row behind it."""
        end = self.length + new.keys.size(2)
        room = self.room.claim(self.length, end)
        room.keys[:, :, self.length : end] = new.keys
        room.values[:, :, self.length : end] = new.values
        return GrowingCache(room=room, length=end)

    def select(self, rows: Tensor) -> GrowingCache:
        """The cache of the given rows, in their order."""
        # Whole rows, the room behind them included, are copied faster than parts of them.
        keys, values = (table.index_select(0, rows) for table in (self.room.keys, self.room.values))
        return GrowingCache(room=_Room(keys, values, self.length), length=self.length)

    def take(self, places: Tensor) -> GrowingCache:
        """The cache of the given places `(rows, n)` of each row, in their order."""
        rows, heads, capacity, width = self.room.keys.shape
        firsts = torch.arange(rows * heads, device=places.device).view(rows, heads, 1) * capacity
        cells = (firsts + places[:, None]).flatten()
        keys, values = (
            table.reshape(-1, width).index_select(0, cells).view(rows, heads, -1, width)
            for table in (self.room.keys, self.room.values)
        )
        return GrowingCache.of(KeysValues(keys=keys, values=values))


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerCache:
    """What one layer attends to."""

    own: GrowingCache
    """Of the target's tokens so far."""
    source: KeysValues | None
    """Of the sources, a row a sentence; nothing where they come first in `own`."""
