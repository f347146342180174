"""Files that appear complete or not at all, also if the machine stops meanwhile."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

_TEMPORARY = ".{name}.{writer}.tmp"


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its name once everything is on the disk.

    Raises:
        OSError: If `path`, which it names, cannot be written; what was there before then stays.
    """
    # Processes of several machines may write the same file and have the same number.
    writer = f"{os.getpid()}.{secrets.token_hex(4)}"
    temporary = path.with_name(_TEMPORARY.format(name=path.name, writer=writer))
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: Path, value: Any, *, end: str = "\n") -> None:
    """Write a value as indented JSON, and `end` after it."""
    with atomic_file(path) as file:
        file.write((json.dumps(value, indent=2, ensure_ascii=False, default=str) + end).encode())


def remove_temporaries(folder: Path) -> None:
    """Remove what killed writers left in a folder and below."""
    for path in folder.rglob(_TEMPORARY.format(name="*", writer="*")):
        path.unlink(missing_ok=True)


def replace_folder(folder: Path, new: Path) -> None:
    """Put the folder `new` in the place of `folder`, which is absent only between two renames."""
    old = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    new.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
