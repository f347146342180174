"""state.json: where a run stood at a checkpoint, and the sizes and checksums of the checkpoint's files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from xxhash import xxh3_128, xxh3_128_hexdigest

from mnmt_model import jsonl
from mnmt_model.errors import RunError

STATE = "state.json"
MODEL = "model"
OPTIMIZER = "optimizer"
_CHECKSUM = "xxh3_128"
_BLOCK = 2**22


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where a run stands: what, beside the tensors, is needed to go on."""

    step: int
    tokens: int
    """Source and target tokens seen, padding left out."""
    flops: int
    stream: dict[str, Any]
    """State of the batch stream."""
    dev_loss: float | None = None
    """Mean loss over the dev sets at this step, nats per token; None if it was not measured then."""
    extras: dict[str, Any] = field(default_factory=dict)
    """What else goes on from a checkpoint, as JSON: early stopping, guards."""


@dataclass(frozen=True, kw_only=True)
class FileRecord:
    """What a file of a checkpoint was when it was written."""

    bytes: int
    xxh3_128: str
    """Checksum, in hexadecimal."""


@dataclass(frozen=True, kw_only=True)
class State:
    """The content of state.json."""

    progress: Progress
    files: Mapping[str, FileRecord]
    """By name, relative to the checkpoint's folder."""
    averaged_steps: Sequence[int] = ()
    """Steps of the checkpoints whose mean this is; none for a checkpoint of training."""


def record_file(path: Path) -> FileRecord:
    """Size and checksum of a file."""
    digest = xxh3_128()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return FileRecord(bytes=path.stat().st_size, xxh3_128=digest.hexdigest())


def write_state(checkpoint: Path, state: State) -> None:
    """Write state.json, with its own checksum."""
    content = json.loads(json.dumps(asdict(state)))
    jsonl.write_json(checkpoint / STATE, {**content, _CHECKSUM: _digest(content)})


def read_state(checkpoint: Path) -> State:
    """Read state.json.

    Raises:
        RunError: If it is missing, broken, or not as it was written.
    """
    path = checkpoint / STATE
    try:
        content = jsonl.read_json(path)
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
    """Where the run stood at `checkpoint`.

    Raises:
        RunError: If its state.json is missing, broken, or not as it was written.
    """
    return read_state(checkpoint).progress


def weights_checksum(checkpoint: Path) -> str:
    """What tells the weights of `checkpoint` from others, without reading them."""
    weights = files_of(checkpoint, MODEL)
    return _digest({path.name: asdict(record) for path, record in weights.items()})


def files_of(checkpoint: Path, kind: str = "") -> dict[Path, FileRecord]:
    """Files of a checkpoint, as they were when written.

    Args:
        checkpoint: The folder.
        kind: `MODEL` or `OPTIMIZER`, for the files of that alone.

    Raises:
        RunError: If its state.json is missing, broken, or not as it was written.
    """
    files = read_state(checkpoint).files
    return {checkpoint / name: record for name, record in files.items() if name.startswith(kind)}


def check_files(files: Mapping[Path, FileRecord]) -> None:
    """Check that files are what they were when written.

    Raises:
        RunError: If one is missing, cannot be read, or has changed.
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
