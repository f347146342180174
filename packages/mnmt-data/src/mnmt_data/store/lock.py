"""Locks that keep other processes from writing what this one writes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mnmt_data.errors import DataError


@contextmanager
def file_lock(
    path: Path, *, name: object, error: type[Exception] = DataError, seconds: float = 0
) -> Iterator[None]:
    """Hold a lock; it ends with the block, or with the process, however that ends.

    Args:
        path: The lock's own file, which is made and holds nothing.
        name: What the lock protects, for the message.
        error: The exception to raise.
        seconds: The time to wait for the lock.

    Raises:
        DataError: If another process still holds the lock.
    """
    from filelock import FileLock, Timeout  # here, since commands that lock nothing import this module

    lock = FileLock(path)
    try:
        lock.acquire(timeout=seconds)
    except Timeout:
        raise error(f"{name}: another process is writing it; wait for it or stop it.") from None
    try:
        see_changes(path.parent)
        yield
    finally:
        lock.release()


def see_changes(folder: Path) -> None:
    """Let this machine see the files that others have put into a folder.

    NFS remembers for up to a minute that a file was absent, unless it knows that the folder has changed; one
    that it changes itself has.
    """
    changed = folder / f".changed.{os.getpid()}.tmp"  # `remove_temporaries` finds that of a killed process.
    changed.touch()
    changed.unlink(missing_ok=True)


def is_locked(path: Path) -> bool:
    """Return whether a process holds the lock of this file, by taking it for a moment."""
    from filelock import FileLock, Timeout

    if not path.exists():
        return False
    try:
        with FileLock(path, timeout=0):
            return False
    except Timeout:
        return True
