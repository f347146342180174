"""Data sets of Hugging Face's library: folders of Arrow streams that it saved, or downloads by name."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from mnmt_data.errors import DataError, missing_extra, one_line
from mnmt_data.readers.arrow_tables import TableBlocks
from mnmt_data.readers.byte_sources import check_is_file, unreadable
from mnmt_data.readers.columns import Table
from mnmt_data.readers.reader import Block, Choice, every_block

HUB = "hf:"
"""Prefix of the name of a data set, which tells it from a file."""

_NAME = re.compile(r"hf:([\w.-]+/[\w.-]+)(?:/([\w.-]+))?:(\w+)")

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class DatasetPairs(Table):
    """Reads a data set of Hugging Face's library, saved by `save_to_disk` or cached: Arrow streams."""

    files: tuple[Path, ...]
    """The files, in order."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files, in order."""
        return self.files

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
        blocks = TableBlocks(self, schema, skip_bad, choice)
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
    return DatasetPairs(path=folder, task=task, files=tuple(files))


def open_hub_dataset(source: str, task: str) -> DatasetPairs:
    """Open a reader of a data set `hf:OWNER/NAME/CONFIG:SPLIT`; download it the first time.

    Args:
        source: Its name, such as `hf:Helsinki-NLP/opus-100/de-en:train`; `/CONFIG` is optional.
        task: The language pair.

    Raises:
        DataError: If the name is of another form, the library `datasets` is missing, or it cannot give the
            data set.
    """
    match = _NAME.fullmatch(source)
    if match is None:
        raise DataError(f"{source}: must be hf:OWNER/NAME/CONFIG:SPLIT, or hf:OWNER/NAME:SPLIT.")
    try:
        from datasets import load_dataset
        from datasets.exceptions import DatasetsError
    except ImportError:
        raise DataError(f"{source}: {missing_extra('huggingface')}.") from None
    name, config, split = match.groups()
    try:
        dataset = load_dataset(name, config, split=split)
    except (OSError, ValueError, DatasetsError) as error:
        raise DataError(
            f"{source}: cannot be had ({one_line(error)}); see to its name and the network."
        ) from None
    if not (files := dataset.cache_files):
        raise DataError(f"{source}: is held in memory; let the library keep it on disk.")
    return DatasetPairs(path=Path(source), task=task, files=tuple(Path(file["filename"]) for file in files))


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
