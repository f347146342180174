"""The folder where data are prepared, until it is whole and takes its place, and the cleaned text in it."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mnmt_data.filters import CleanBlock, FilterReport
from mnmt_data.store.atomic_file import atomic_file, remove_temporaries, write_json
from mnmt_data.store.prepared import DESCRIPTION
from mnmt_data.store.ragged import offsets_of


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """A partial data folder, whose `work` holds what only the stages need.

    A stage that has finished something leaves a mark, a small JSON file written after all that it speaks of.
    """

    folder: Path

    @property
    def work(self) -> Path:
        """Cleaned text, choices and marks; gone when the data are whole."""
        return self.folder / "work"

    def open(self, identity: list[str | int]) -> bool:
        """Make the folder, or enters one that was begun for the same inputs, settings and version.

        Returns:
            Whether it was begun before.
        """
        begun = self.mark("identity")
        if begun is not None and begun == identity:
            remove_temporaries(self.folder)
            return True
        self.remove()
        for name in ("parts", "chosen", "encoded"):
            (self.work / name).mkdir(parents=True)
        for name in ("text", "shards"):
            (self.folder / name).mkdir()
        self.set_mark("identity", identity)
        return False

    def remove(self) -> None:
        """Throws everything away."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def mark(self, name: str) -> Any:
        """What a mark says; None if it is not there."""
        path = self.work / f"{name}.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None

    def set_mark(self, name: str, content: Any) -> None:
        """Leave a mark."""
        write_json(self.work / f"{name}.json", content)

    def part(self, source: str, number: int) -> Path:
        """Where a part of a source is."""
        return self.work / "parts" / f"{source}.{number:06}.arrow"

    def chosen(self, split: str, task: str) -> Path:
        """Where the rows chosen for a split are."""
        return self.work / "chosen" / f"{split}.{task}.npy"

    def is_described(self) -> bool:
        """Whether the data are whole, and only have to take their place."""
        return (self.folder / DESCRIPTION).is_file()

    def publish(self, folder: Path) -> None:
        """Take the place of `folder`, which is there, old or new, but for the moment between two renames."""
        shutil.rmtree(self.work, ignore_errors=True)
        old = folder.with_name(f".{folder.name}.old")
        shutil.rmtree(old, ignore_errors=True)
        if folder.exists():
            folder.rename(old)
        self.folder.rename(folder)
        shutil.rmtree(old, ignore_errors=True)


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
    with atomic_file(path) as file, pa.ipc.new_file(file, batch.schema, options=_OPTIONS) as writer:
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
