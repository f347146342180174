"""Tensors in safetensors files, each whole in one file or by rows in several.

The metadata of a file with some rows give the row of the whole tensor at which each of its tensors begins, in
the format of `torch.distributed.checkpoint.HuggingFaceStorageReader`, which reads these files too.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from mnmt_model.errors import RunError

_SHARDING = "DCP_SHARDING_INFO"
_OFFSETS = "saved_offsets"


def write_tensors(path: Path, tensors: Mapping[str, tuple[Tensor, int]]) -> None:
    """Write {name: (rows, number of the first)} to the disk.

    Raises:
        OSError: If the disk has no room or cannot be written.
    """
    try:
        save_file({name: rows.contiguous() for name, (rows, _) in tensors.items()}, path, _metadata(tensors))
    except SafetensorError as error:
        raise _as_os_error(error, path) from None
    with path.open("rb") as file:
        os.fsync(file.fileno())


class TensorFiles:
    """Tensors in one or several files."""

    def __init__(self, paths: Iterable[Path]) -> None:
        """Open the files.

        Raises:
            RunError: If one cannot be read.
        """
        self._pieces: dict[str, list[_Piece]] = {}
        for path in paths:
            try:
                self._open(path)
            except (SafetensorError, OSError) as error:
                raise RunError(f"{path}: cannot be read ({error})") from None

    def _open(self, path: Path) -> None:
        file: Any = safe_open(path, framework="pt")
        offsets = json.loads((file.metadata() or {}).get(_SHARDING, "{}"))
        for name in file.keys():  # noqa: SIM118 - it is no mapping
            shape = tuple(file.get_slice(name).get_shape())
            first = offsets[name][_OFFSETS][0] if offsets and shape else 0
            self._pieces.setdefault(name, []).append(_Piece(file, name, first, shape))

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """{name: shape} of the whole tensors."""
        return {name: _whole_shape(pieces) for name, pieces in self._pieces.items()}

    def read(self, name: str) -> Tensor:
        """Read a whole tensor."""
        pieces = self._pieces[name]
        if len(pieces) == 1:
            return pieces[0].read()
        return torch.cat([piece.read() for piece in sorted(pieces, key=lambda piece: piece.first)])

    def copy_rows(self, name: str, rows: Tensor, first: int) -> None:
        """Fill `rows` with rows of a tensor, from number `first` on, and read no others."""
        for piece in self._pieces[name]:
            piece.copy_to(rows, first)


@dataclass(frozen=True)
class _Piece:
    """Rows of a tensor in a file."""

    file: Any
    name: str
    first: int
    """Number of the first row in the whole tensor."""
    shape: tuple[int, ...]

    def read(self) -> Tensor:
        tensor: Tensor = self.file.get_tensor(self.name)
        return tensor

    def copy_to(self, rows: Tensor, first: int) -> None:
        """Copy the rows that are also among `rows`, the first of which is number `first`."""
        if tuple(rows.shape) == self.shape and first == self.first:
            rows.copy_(self.read())
            return
        start, stop = max(first, self.first), min(first + len(rows), self.first + self.shape[0])
        if start < stop:
            shared = self.file.get_slice(self.name)[start - self.first : stop - self.first]
            rows[start - first : stop - first].copy_(shared)


def _metadata(tensors: Mapping[str, tuple[Tensor, int]]) -> dict[str, str]:
    """Return metadata of one entry: safetensors would write several in any order, and files would differ."""
    if not any(first for _, first in tensors.values()):
        return {"format": "pt"}
    offsets = {name: {_OFFSETS: _offsets(rows, first)} for name, (rows, first) in tensors.items()}
    return {_SHARDING: json.dumps(offsets)}


def _offsets(rows: Tensor, first: int) -> list[int]:
    return [first, *[0] * (rows.dim() - 1)] if rows.dim() else []


def _whole_shape(pieces: list[_Piece]) -> tuple[int, ...]:
    last = max(pieces, key=lambda piece: piece.first)
    return (last.first + last.shape[0], *last.shape[1:]) if last.shape else ()


def _as_os_error(error: SafetensorError, path: Path) -> OSError:
    number = re.search(r"os error (\d+)", str(error))
    return OSError(int(number[1]), os.strerror(int(number[1])), str(path)) if number else OSError(str(error))
