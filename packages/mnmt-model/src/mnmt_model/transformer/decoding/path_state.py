"""The state of decoding in C++: hypotheses are paths through one table of keys and values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from mnmt_model.transformer.attention import KeysValues
from mnmt_model.transformer.decoding.packed_weights import PackedWeights

ROOM = 16
"""Steps for which a new table has room, with the hypotheses that there are now."""


class Table:
    """Keys and values of target tokens, a slot each, which stay where they were written.

    Args:
        slots: `(num_layers, capacity, 2 * d_attention)`, keys and then values.
        written: The number of slots that are taken.
    """

    def __init__(self, slots: Tensor, written: int = 0) -> None:
        self.slots, self.written = slots, written

    def claim(self, number: int) -> int:
        """Take so many slots, and return the first."""
        self.written += number
        return self.written - number

    def has_room(self, number: int) -> bool:
        """Return whether so many slots are left."""
        return self.written + number <= self.slots.size(1)

    def compacted(self, paths: Tensor) -> tuple[Table, Tensor]:
        """Return a table of the slots that `paths` name, with room for as many more, and the paths in it."""
        live, new_paths = torch.unique(paths, return_inverse=True)
        layers, _, width = self.slots.shape
        capacity = 2 * len(live) + ROOM * len(paths)
        slots = self.slots.new_empty(layers, capacity, width)
        if len(live):
            torch.index_select(self.slots, 1, live, out=slots[:, : len(live)])
        return Table(slots, len(live)), new_paths.int()


@dataclass(frozen=True, kw_only=True, eq=False)
class Sources:
    """The sources of a batch, which all hypotheses share."""

    layers: Sequence[KeysValues]
    """`(batch, num_heads, src_width, head_dim)` each."""
    lengths: Tensor
    """`(batch,)` int32, tokens of each source."""

    @property
    def width(self) -> int:
        """The places of a source in the tables."""
        return self.layers[0].keys.size(2)

    def addresses(self, table: Table) -> Tensor:
        """Return `(num_layers, 3)` int64, the addresses of a layer's slots, source keys and source values."""
        return torch.tensor(
            [
                [slots.data_ptr(), source.keys.data_ptr(), source.values.data_ptr()]
                for slots, source in zip(table.slots, self.layers, strict=True)
            ]
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class PathState:
    """Hypotheses, a row each. Where they branch, paths are copied, and no keys or values.

    States that come from one another share a table, so one thread at a time may use them.
    """

    weights: PackedWeights
    """The model's weights when the sources were read."""
    sources: Sources
    table: Table
    addresses: Tensor
    """See `Sources.addresses`."""
    paths: Tensor
    """`(rows, length)` int32, the slots of the tokens so far."""
    sentences: Tensor
    """`(rows,)` int32, the source of each hypothesis."""

    @classmethod
    def start(cls, sources: Sources, weights: PackedWeights) -> PathState:
        """Return one empty hypothesis of every source."""
        batch = len(sources.lengths)
        like = sources.layers[0].keys
        _, heads, _, head_dim = like.shape
        table = Table(like.new_empty(len(sources.layers), 0, 2 * heads * head_dim))
        return cls(
            weights=weights,
            sources=sources,
            table=table,
            addresses=sources.addresses(table),
            paths=torch.empty(batch, 0, dtype=torch.int32),
            sentences=torch.arange(batch, dtype=torch.int32),
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Refuse to be copied or pickled: the addresses would be those of the first state."""
        raise TypeError("a PathState holds addresses, and cannot be copied; `select` its rows instead.")

    @property
    def length(self) -> int:
        """Target tokens so far."""
        return self.paths.size(1)

    def select(self, rows: Tensor) -> PathState:
        """Return the state of the given rows `(n,)`, which may repeat rows and leave rows out."""
        return replace(
            self, paths=self.paths.index_select(0, rows), sentences=self.sentences.index_select(0, rows)
        )

    def add_token(self) -> tuple[PathState, int]:
        """Return the state with a slot for another token of every row, and the first of these slots."""
        rows = len(self.paths)
        state = self if self.table.has_room(rows) else self._compacted()
        first = state.table.claim(rows)
        new = torch.arange(first, first + rows, dtype=torch.int32)[:, None]
        return replace(state, paths=torch.cat([state.paths, new], dim=1)), first

    def _compacted(self) -> PathState:
        table, paths = self.table.compacted(self.paths)
        return replace(self, table=table, paths=paths, addresses=self.sources.addresses(table))
