"""Cleaned text on its way to shards: part files, each the pairs that are left of one block."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mnmt_data.filters import CleanBlock, FilterReport
from mnmt_data.store.atomic_file import whole_file
from mnmt_data.store.ragged import offsets_of

_REPORT = b"report"
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


def write_part(path: Path, block: CleanBlock, *, read: int) -> None:
    """Write a part: text, numbers of the pairs in their source, origins, keys, and what the filters dropped.

    Args:
        path: An Arrow IPC file of one record batch.
        block: The pairs kept of a block.
        read: Pairs of the block before.
    """
    columns = {
        "src": pa.array(block.src, pa.large_string()),
        "tgt": pa.array(block.tgt, pa.large_string()),
        "row": pa.array(block.rows),
        "origin": pa.array(block.origins or itertools.repeat(None, len(block.src)), pa.string()),
        "pair_key": pa.array(block.keys.pair),
        "near_key": pa.array(block.keys.near),
        "src_key": pa.array(block.keys.src),
        "tgt_key": pa.array(block.keys.tgt),
    }
    said = {"read": read, "pairs": len(block.src), "filters": block.report.to_dict()}
    batch = pa.record_batch(columns, metadata={_REPORT: json.dumps(said)})
    with whole_file(path) as file, pa.ipc.new_file(file, batch.schema, options=_OPTIONS) as writer:
        writer.write_batch(batch)


def read_part(path: Path, *columns: str) -> pa.RecordBatch:
    """Some columns of a part."""
    with path.open("rb") as file:
        places = [pa.ipc.open_file(file).schema.get_field_index(column) for column in columns]
        reader = pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(included_fields=places))
        return reader.get_batch(0).select(columns)


class Parts:
    """The parts of one split and task, in order, with their pairs numbered through."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.paths = tuple(paths)
        self._said = [_read_said(path) for path in self.paths]
        self.starts = offsets_of([said["pairs"] for said in self._said])

    def __len__(self) -> int:
        return int(self.starts[-1])

    @property
    def read(self) -> int:
        """Pairs before cleaning."""
        return sum(said["read"] for said in self._said)

    @cached_property
    def filters(self) -> FilterReport:
        """What the filters dropped."""
        return sum((FilterReport.from_dict(said["filters"]) for said in self._said), FilterReport())

    def columns(self, *names: str) -> Iterator[tuple[slice, list[NDArray[Any]]]]:
        """The rows of each part, and number columns of them."""
        for path, start, stop in zip(self.paths, self.starts[:-1], self.starts[1:], strict=True):
            batch = read_part(path, *names)
            yield slice(start, stop), [batch.column(name).to_numpy(zero_copy_only=False) for name in names]

    def values(self, rows: NDArray[np.int64], *names: str) -> Iterator[tuple[Any, ...]]:
        """Columns at rows that do not fall, a tuple a row; only the parts that hold some are read."""
        bounds = np.searchsorted(rows, self.starts)
        for number in np.flatnonzero(np.diff(bounds)).tolist():
            local = rows[bounds[number] : bounds[number + 1]] - self.starts[number]
            batch = read_part(self.paths[number], *names).take(pa.array(local))
            yield from zip(*(batch.column(name).to_pylist() for name in names), strict=True)


def _read_said(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        said: dict[str, Any] = json.loads(pa.ipc.open_file(file).schema.metadata[_REPORT])
    return said
