"""Tensors in safetensors files, each whole in one file or as parts in several.

The metadata of a file hold the offset of each part in its tensor, in the format of
`torch.distributed.checkpoint.HuggingFaceStorageReader`, which can read these files.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from mnmt_model.errors import RunError

_SHARDING = "DCP_SHARDING_INFO"
_OFFSETS = "saved_offsets"


Part = tuple[Tensor, tuple[int, ...]]
"""A part of a tensor, and its offset in each dimension; () for a whole tensor."""


def write_tensors(path: Path, tensors: Mapping[str, Part]) -> None:
    """Write {name: part} to the disk.

    Raises:
        OSError: If the disk has no room or cannot be written.
    """
    try:
        save_file({name: part.contiguous() for name, (part, _) in tensors.items()}, path, _metadata(tensors))
    except SafetensorError as error:
        raise _as_os_error(error, path) from None
    with path.open("rb") as file:
        os.fsync(file.fileno())


class TensorFiles:
    """Tensors in one or several files."""

    def __init__(self, paths: Iterable[Path]) -> None:
        """Open the files.

        Raises:
            RunError: If a file cannot be read.
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
            starts = tuple(offsets[name][_OFFSETS]) if offsets else (0,) * len(shape)
            self._pieces.setdefault(name, []).append(_Piece(file, name, starts, shape))

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """{name: shape} of the whole tensors."""
        return {name: _whole_shape(pieces) for name, pieces in self._pieces.items()}

    def read(self, name: str) -> Tensor:
        """Read a whole tensor."""
        pieces = self._pieces[name]
        first = pieces[0].read()
        if len(pieces) == 1:
            return first
        whole = first.new_empty(_whole_shape(pieces))
        for piece in pieces:
            piece.copy_to(whole, (0,) * whole.dim())
        return whole

    def copy_part(self, name: str, part: Tensor, starts: tuple[int, ...]) -> None:
        """Fill `part`, which begins at `starts` in the tensor; read only what it needs."""
        for piece in self._pieces[name]:
            piece.copy_to(part, starts)


@dataclass(frozen=True)
class _Piece:
    """A part of a tensor in a file."""

    file: Any
    name: str
    starts: tuple[int, ...]
    """Its offset in each dimension of the whole tensor."""
    shape: tuple[int, ...]

    def read(self) -> Tensor:
        tensor: Tensor = self.file.get_tensor(self.name)
        return tensor

    def copy_to(self, part: Tensor, starts: tuple[int, ...]) -> None:
        """Copy the overlap with `part`, which begins at `starts`."""
        if (tuple(part.shape), starts) == (self.shape, self.starts):
            part.copy_(self.read())
            return
        sides = list(zip(self.starts, self.shape, starts, part.shape, strict=True))
        shared = [(max(a, b), min(a + size, b + other)) for a, size, b, other in sides]
        if all(low < high for low, high in shared):
            mine = tuple(slice(low - a, high - a) for (low, high), a in zip(shared, self.starts, strict=True))
            theirs = tuple(slice(low - b, high - b) for (low, high), b in zip(shared, starts, strict=True))
            part[theirs].copy_(self.file.get_slice(self.name)[mine])


def _metadata(tensors: Mapping[str, Part]) -> dict[str, str]:
    """Return metadata with one entry, since safetensors writes several in random order."""
    if not any(any(starts) for _, starts in tensors.values()):
        return {"format": "pt"}
    offsets = {name: {_OFFSETS: list(starts) or [0] * part.dim()} for name, (part, starts) in tensors.items()}
    return {_SHARDING: json.dumps(offsets)}


def _whole_shape(pieces: list[_Piece]) -> tuple[int, ...]:
    ends = [[sum(side) for side in zip(piece.starts, piece.shape, strict=True)] for piece in pieces]
    return tuple(max(side) for side in zip(*ends, strict=True))


def _as_os_error(error: SafetensorError, path: Path) -> OSError:
    number = re.search(r"os error (\d+)", str(error))
    return OSError(int(number[1]), os.strerror(int(number[1])), str(path)) if number else OSError(str(error))
