"""Data sets as Hugging Face's library saves them: a folder of Arrow streams, and a file that lists these."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from mnmt_data.errors import DataError
from mnmt_data.readers.arrow_tables import TableBlocks
from mnmt_data.readers.byte_sources import check_is_file, unreadable
from mnmt_data.readers.columns import ScoreColumn
from mnmt_data.readers.reader import Block, Choice, every_block

T = TypeVar("T")


@dataclass(frozen=True)
class DatasetPairs:
    """Reads a data set of Hugging Face's library, saved by `save_to_disk` or cached: Arrow streams."""

    path: Path
    """Its folder or name, for messages and for the direction of `src` and `tgt`."""

    task: str
    paths: tuple[Path, ...]
    """The files, in order."""

    scores: tuple[ScoreColumn, ...] = ()
    """Scores to read."""

    def blocks(self, *, skip_bad: bool = False, choice: Choice = every_block) -> Iterator[Block]:
        """Yield blocks of pairs; a null is an empty sentence.

        Args:
            skip_bad: Whether to list rows that are not UTF-8 in the blocks instead of raising.
            choice: Selects the blocks to read.

        Raises:
            DataError: If a file is missing or damaged, or the data set has no columns for the task.
        """
        with _open_stream(self.paths[0]) as stream:
            schema = stream.schema
        blocks = TableBlocks(self.path, self.task, self.scores, schema, skip_bad, choice)
        yield from blocks.of(lambda names: (batch for path in self.paths for batch in _batches(path, schema)))


def _batches(path: Path, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    with _open_stream(path) as stream:
        if not stream.schema.equals(schema):
            raise DataError(f"{path}: has other columns than the first file of the data set; save it again.")
        yield from stream


@contextmanager
def _open_stream(path: Path) -> Iterator[Any]:
    check_is_file(path)
    try:
        with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as stream:
            yield stream
    except (pa.ArrowException, OSError) as error:
        raise DataError(unreadable(path, "a data set", error)) from None


def open_dataset(folder: Path, task: str) -> DatasetPairs:
    """Open a folder that Hugging Face's `Dataset.save_to_disk` wrote.

    Raises:
        DataError: If it is not such a folder, or holds several splits; the message names them.
    """
    if (splits := folder / "dataset_dict.json").is_file():
        names = ", ".join(_listed(splits, lambda table: map(str, table["splits"])))
        raise DataError(f"{folder}: holds the splits {names}; name one of these folders in it.")
    state = folder / "state.json"
    files = _listed(state, lambda table: (folder / file["filename"] for file in table["_data_files"]))
    return DatasetPairs(folder, task, tuple(files))


def is_dataset(folder: Path) -> bool:
    """Return whether `save_to_disk` wrote a folder."""
    return any((folder / name).is_file() for name in ("state.json", "dataset_dict.json"))


def _listed(path: Path, entries: Callable[[Any], Iterable[T]]) -> list[T]:
    """Return the entries of a list in a file of a saved data set; at least one."""
    try:
        if listed := list(entries(json.loads(path.read_text(encoding="utf-8")))):
            return listed
    except (ValueError, TypeError, KeyError):
        pass
    raise DataError(f"{path}: does not describe a saved data set; save it again.")
