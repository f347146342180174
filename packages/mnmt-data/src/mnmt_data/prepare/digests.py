"""Checksums of input files, kept so that an unchanged terabyte is not read again."""

from __future__ import annotations

import json
import time
from pathlib import Path

from mnmt_data.errors import DataError
from mnmt_data.store.atomic_file import write_json
from mnmt_data.store.segments import checksum

_SETTLED_NS = 2_000_000_000
"""A file that changed so lately may change again and keep its time of change."""

Stamp = tuple[int, int]
"""Size and time of last change, in nanoseconds."""


class Digests:
    """SHA-256 of files, from a cache where size and time of change are as before."""

    def __init__(self, cache: Path) -> None:
        self._path = cache
        self._cache = _read(cache)
        self._used: dict[Path, Stamp] = {}

    def of(self, path: Path) -> str:
        """SHA-256 of a file."""
        size, changed = self._used[path] = _stamp(path)
        known = self._cache.get(str(path.resolve()))
        if known is not None and known[:2] == [size, changed]:
            return str(known[2])
        digest = checksum(path)
        if time.time_ns() - changed > _SETTLED_NS:
            self._cache[str(path.resolve())] = [size, changed, digest]
        return digest

    def save(self) -> None:
        """Write the cache."""
        write_json(self._path, self._cache)

    def check_unchanged(self) -> None:
        """Look whether the files are still those that `of` saw.

        Raises:
            DataError: Naming one that is not.
        """
        for path, stamp in self._used.items():
            if not path.exists() or _stamp(path) != stamp:
                raise DataError(f"{path}: changed while it was read; run `mnmt-data prepare` again.")


def _stamp(path: Path) -> Stamp:
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns


def _read(path: Path) -> dict[str, list[int | str]]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}
