"""The folder where data are prepared until they are complete, and the cleaned text in it."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mnmt_data.filters import CleanBlock, FilterReport
from mnmt_data.store.atomic_file import atomic_file, remove_temporaries, replace_folder, write_json
from mnmt_data.store.description import DESCRIPTION
from mnmt_data.store.ragged import offsets_of


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """A partial data folder; its subfolder `work` holds temporary files of the stages.

    A stage marks finished work by a small JSON file, written after the files that it describes.
    """

    folder: Path

    @property
    def work(self) -> Path:
        """Folder of cleaned text, splits and marks; it is removed when the data are complete."""
        return self.folder / "work"

    def open(self, identity: list[str | int]) -> bool:
        """Make the folder, or continue one with the same inputs, settings and version.

        Returns:
            Whether the folder was there.
        """
        if self.mark("identity") == identity:
            remove_temporaries(self.folder)
            return True
        self.remove()
        for name in ("parts", "splits", "leaks", "encoded"):
            (self.work / name).mkdir(parents=True)
        for name in ("text", "shards"):
            (self.folder / name).mkdir()
        self.set_mark("identity", identity)
        return False

    def remove(self) -> None:
        """Remove the folder and everything in it."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def mark(self, name: str) -> Any:
        """Return the content of a mark; None if it is missing."""
        path = self.work / f"{name}.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None

    def set_mark(self, name: str, content: Any) -> None:
        """Write a mark."""
        write_json(self.work / f"{name}.json", content)

    def part(self, source: str, number: int) -> Path:
        """Return the path of a part of a source."""
        return self.work / "parts" / f"{source}.{number:06}.arrow"

    def parts(self, sources: Collection[str]) -> Iterator[Path]:
        """Yield the parts of some sources that are already written."""
        for path in (self.work / "parts").glob("*.arrow"):
            if path.stem.rpartition(".")[0] in sources:
                yield path

    def unshuffled(self, task: str, number: int) -> Path:
        """Return the path of a segment of a training shard that is shuffled afterwards."""
        return self.work / "encoded" / f"train.{task}.{number:05}.arrow"

    def split_path(self, split: str, task: str) -> Path:
        """Return the path of the rows of a split."""
        return self.work / "splits" / f"{split}.{task}.npy"

    def is_complete(self) -> bool:
        """Return whether the data are complete and ready to publish."""
        return (self.folder / DESCRIPTION).is_file()

    def publish(self, folder: Path) -> None:
        """Remove the temporary files, and replace `folder` by this one."""
        shutil.rmtree(self.work, ignore_errors=True)
        replace_folder(folder, self.folder)


SCORE = "score."
"""Prefix of the names of columns of scores."""

_REPORT, _SAMPLE = b"report", b"sample"
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


def write_part(path: Path, block: CleanBlock, *, read: int, sample: Any = None) -> None:
    """Write a part: text, numbers of the pairs in their source, origins, keys, scores, and a report.

    Args:
        path: An Arrow IPC file of one record batch.
        block: The pairs of a block that passed the filters.
        read: Pairs of the block before the filters.
        sample: What a sample of them looks like, as a value for JSON.
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
        **{f"{SCORE}{name}": pa.array(values) for name, values in block.scores.items()},
    }
    header = {"read": read, "pairs": len(block.src), "filters": block.report.to_dict()}
    metadata = {_REPORT: json.dumps(header), _SAMPLE: json.dumps(sample)}
    batch = pa.record_batch(columns, metadata=metadata)
    with atomic_file(path) as file, pa.ipc.new_file(file, batch.schema, options=_OPTIONS) as writer:
        writer.write_batch(batch)


def read_part(path: Path, *columns: str) -> pa.RecordBatch:
    """Read some columns of a part."""
    # A file of Arrow's own: its threads may let go of Python's when the interpreter ends, and abort it.
    with pa.OSFile(str(path)) as file:
        indices = [pa.ipc.open_file(file).schema.get_field_index(column) for column in columns]
        reader = pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(included_fields=indices))
        return reader.get_batch(0).select(columns)


class Parts:
    """The parts of one split and task, in order; rows count the pairs of all of them."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.paths = tuple(paths)
        self.read = 0
        """Number of pairs before cleaning."""
        self.filters = FilterReport()
        """Report of the pairs that the filters dropped."""
        pairs: list[int] = []
        for header in map(read_header, self.paths):
            self.read += header["read"]
            self.filters += FilterReport.from_dict(header["filters"])
            pairs.append(header["pairs"])
        self.starts = offsets_of(pairs)

    def __len__(self) -> int:
        return int(self.starts[-1])

    @property
    def slices(self) -> Iterator[slice]:
        """The rows of each part."""
        return map(slice, self.starts[:-1].tolist(), self.starts[1:].tolist())

    def columns(self, *names: str) -> Iterator[tuple[slice, list[NDArray[Any]]]]:
        """Yield the rows of each part, and some columns of numbers at them."""
        for path, rows in zip(self.paths, self.slices, strict=True):
            batch = read_part(path, *names)
            yield rows, [batch.column(name).to_numpy(zero_copy_only=False) for name in names]

    def values(self, rows: NDArray[np.int64], *names: str) -> Iterator[tuple[Any, ...]]:
        """Yield some columns at rising rows, a tuple for each row; only parts with such rows are read."""
        bounds = np.searchsorted(rows, self.starts)
        for number in np.flatnonzero(np.diff(bounds)).tolist():
            local = rows[bounds[number] : bounds[number + 1]] - self.starts[number]
            batch = read_part(self.paths[number], *names).take(pa.array(local))
            yield from zip(*(batch.column(name).to_pylist() for name in names), strict=True)


def read_header(path: Path) -> dict[str, Any]:
    """Return the header of a part: pairs `read`, `pairs` left, and the report of the `filters`."""
    header: dict[str, Any] = _read_metadata(path, _REPORT)
    return header


def read_sample(path: Path) -> Any:
    """Return the sample of a part; None if it has none."""
    return _read_metadata(path, _SAMPLE)


def _read_metadata(path: Path, name: bytes) -> Any:
    with pa.OSFile(str(path)) as file:
        return json.loads(pa.ipc.open_file(file).schema.metadata.get(name, b"null"))
