"""Folders that appear complete or not at all, also if the machine stops meanwhile."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mnmt_model.distributed.world import on_first_rank, rank_and_size
from mnmt_model.errors import RunError

PARTIAL = ".partial"
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def atomic_folder(final: Path, *, needed: int) -> Iterator[Path]:
    """Make a temporary folder to write into, which replaces `final` at the end of the block.

    Every rank enters the context. If the block fails, the temporary folder is removed.

    Args:
        final: Final path of the folder.
        needed: Bytes that all ranks together will write.

    Raises:
        RunError: If the disk has no room or cannot be written.
    """
    partial = final.with_name(final.name + PARTIAL)
    try:
        on_first_rank(lambda: _make(partial, needed))
        yield partial
        on_first_rank(lambda: _publish(partial, final))
    except BaseException as error:
        if rank_and_size()[0] == 0:
            shutil.rmtree(partial, ignore_errors=True)
        if not isinstance(error, OSError):
            raise
        raise RunError(f"{final}: {_refusal(error, final.parent, needed)}") from None


def remove(folder: Path) -> None:
    """Remove a folder, if it exists; rename it first, so that no incomplete folder has its name."""
    if folder.exists():
        removed = folder.with_name(f"{folder.name}.removed{PARTIAL}")
        shutil.rmtree(removed, ignore_errors=True)
        folder.rename(removed)
        shutil.rmtree(removed)


def remove_leftovers(folder: Path) -> None:
    """Remove partial folders of killed processes in `folder`."""
    for leftover in folder.glob(f"*{PARTIAL}"):
        shutil.rmtree(leftover)


def _make(partial: Path, needed: int) -> None:
    partial.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(partial, ignore_errors=True)
    if shutil.disk_usage(partial.parent).free < needed:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    partial.mkdir()


def _publish(partial: Path, final: Path) -> None:
    _sync(partial)
    remove(final)
    partial.rename(final)
    _sync(final.parent)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _refusal(error: OSError, folder: Path, needed: int) -> str:
    reason = error.strerror or str(error)
    if error.errno not in _FULL:
        return f"cannot be written ({reason})"
    free = shutil.disk_usage(folder).free
    return (
        f"needs {needed:,} bytes, and the disk, which has {free:,} free, refuses them ({reason}); "
        "make room and run this again"
    )
