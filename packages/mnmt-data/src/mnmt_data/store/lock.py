"""File locks between processes that write the same files."""

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
    """Hold a lock until the block or the process ends.

    Args:
        path: The lock file, created empty.
        name: The protected file or folder, for the message.
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
    """Make files that other machines added to a folder visible on this one.

    NFS caches for up to a minute that a file is absent. A change of the folder from here discards that cache.
    """
    changed = folder / f".changed.{os.getpid()}.tmp"  # of a killed process: `remove_temporaries` finds it
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
