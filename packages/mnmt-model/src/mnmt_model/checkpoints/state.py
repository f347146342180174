"""state.json of a checkpoint: the progress of training, and the sizes and checksums of the files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from xxhash import xxh3_128, xxh3_128_hexdigest

from mnmt_data.store import read_json, write_json
from mnmt_model.errors import RunError

STATE = "state.json"
MODEL = "model"
OPTIMIZER = "optimizer"
_CHECKSUM = "xxh3_128"
_BLOCK = 2**22


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The progress of training: everything needed to continue, besides the tensors."""

    step: int
    tokens: int
    """Source and target tokens of training so far, without padding."""
    flops: int
    stream: dict[str, Any]
    """State of the batch stream."""
    dev_loss: float | None = None
    """Mean loss over the dev sets at this step, nats per token; None if not measured."""
    temporary: bool = False
    """Whether the checkpoint was made between two regular ones, and is removed after the next."""
    extras: dict[str, Any] = field(default_factory=dict)
    """State of early stopping, guards and log, as JSON."""


@dataclass(frozen=True, kw_only=True)
class FileRecord:
    """Size and checksum of a file of a checkpoint when it was written."""

    bytes: int
    xxh3_128: str
    """Checksum, in hexadecimal."""


@dataclass(frozen=True, kw_only=True)
class State:
    """The content of state.json."""

    progress: Progress
    files: Mapping[str, FileRecord]
    """{name, relative to the checkpoint's folder: its size and checksum}."""
    averaged_steps: Sequence[int] = ()
    """Steps of the checkpoints that were averaged; empty for a checkpoint of training."""


def record_file(path: Path) -> FileRecord:
    """Return the size and checksum of a file."""
    digest = xxh3_128()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return FileRecord(bytes=path.stat().st_size, xxh3_128=digest.hexdigest())


def write_state(checkpoint: Path, state: State) -> None:
    """Write state.json, with its own checksum."""
    content = json.loads(json.dumps(asdict(state)))
    write_json(checkpoint / STATE, {**content, _CHECKSUM: _digest(content)}, end="")


def read_state(checkpoint: Path) -> State:
    """Read state.json.

    Raises:
        RunError: If the file is missing, broken, or has changed since it was written.
    """
    path = checkpoint / STATE
    try:
        content = read_json(path, error=RunError)
    except OSError as error:
        raise RunError(f"{path}: cannot be read ({error.strerror})") from None
    if not isinstance(content, dict) or _CHECKSUM not in content:
        raise RunError(f"{path}: holds no checksum; another version of mnmt-model wrote it, or it is broken")
    if content.pop(_CHECKSUM) != _digest(content):
        raise RunError(f"{path}: has changed since it was written")
    return State(
        progress=Progress(**content["progress"]),
        files={name: FileRecord(**record) for name, record in content["files"].items()},
        averaged_steps=content["averaged_steps"],
    )


def read_progress(checkpoint: Path) -> Progress:
    """Return the progress at `checkpoint`.

    Raises:
        RunError: If its state.json is missing, broken, or has changed since it was written.
    """
    return read_state(checkpoint).progress


def weights_checksum(checkpoint: Path) -> str:
    """Return a checksum of the weights of `checkpoint`, without reading them."""
    weights = files_of(checkpoint, MODEL)
    return _digest({path.name: asdict(record) for path, record in weights.items()})


def files_of(checkpoint: Path, kind: str = "") -> dict[Path, FileRecord]:
    """Return the files of a checkpoint, with their sizes and checksums when they were written.

    Args:
        checkpoint: The folder.
        kind: `MODEL` or `OPTIMIZER`, for its files only.

    Raises:
        RunError: If its state.json is missing, broken, or has changed since it was written.
    """
    files = read_state(checkpoint).files
    return {checkpoint / name: record for name, record in files.items() if name.startswith(kind)}


def check_files(files: Mapping[Path, FileRecord]) -> None:
    """Check that files have not changed since they were written.

    Raises:
        RunError: If a file is missing, cannot be read, or has changed.
    """
    for path, record in files.items():
        try:
            _check_file(path, record)
        except OSError as error:
            raise RunError(f"{path}: cannot be read ({error.strerror})") from None


def _check_file(path: Path, record: FileRecord) -> None:
    size = path.stat().st_size
    if size != record.bytes:
        raise RunError(f"{path}: holds {size} bytes, not the {record.bytes} that were written")
    if record_file(path) != record:
        raise RunError(f"{path}: has changed since it was written")


def _digest(content: Any) -> str:
    return xxh3_128_hexdigest(json.dumps(content, sort_keys=True).encode())
