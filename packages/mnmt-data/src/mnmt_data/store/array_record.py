"""Arrays with the numbers and texts that they depend on, as one .npz file."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from mnmt_data.store.atomic_file import atomic_file

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record", bound="DataclassInstance")


def write_record(path: Path, record: DataclassInstance) -> None:
    """Write a dataclass of arrays, numbers and texts, as a file that appears complete or not at all.

    Args:
        path: The file; its folder is created if missing.
        record: The dataclass.
    """
    path.parent.mkdir(exist_ok=True)
    with atomic_file(path) as file:
        values: dict[str, Any] = {
            each.name: np.asarray(getattr(record, each.name)) for each in fields(record)
        }
        np.savez_compressed(file, **values)


def read_record(path: Path, kind: type[Record]) -> Record | None:
    """Read a file of `write_record`.

    Args:
        path: The file.
        kind: The dataclass that was written.

    Returns:
        The dataclass; None if the file is missing or damaged.
    """
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            values: dict[str, Any] = {each.name: arrays[each.name] for each in fields(kind)}
            return kind(**{name: value if value.ndim else value.item() for name, value in values.items()})
    except Exception:  # numpy, zipfile and zlib raise many types on damaged bytes
        return None
