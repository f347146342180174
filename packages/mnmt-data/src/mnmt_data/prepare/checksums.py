"""SHA-256 of files, computed by worker processes and remembered where a file has not changed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mnmt_data.errors import DataError
from mnmt_data.prepare.stages import Stages
from mnmt_data.readers.reader import PAIR_BYTES
from mnmt_data.store.atomic_file import checksum, write_json

_SETTLED_NS = 2_000_000_000
"""Age below which a file is not cached: it may change again within the same time stamp."""

Stamp = tuple[int, int]
"""Size and time of last change, in nanoseconds."""


@dataclass(frozen=True)
class ChecksumJob:
    """A file of which to compute the SHA-256."""

    path: Path
    bytes: int

    def __len__(self) -> int:
        """Estimate the number of pairs."""
        return self.bytes // PAIR_BYTES


def checksums_of(paths: Iterable[Path], stages: Stages) -> dict[Path, str]:
    """Return {file: its SHA-256}, in the order of `paths`."""
    jobs = [ChecksumJob(path, path.stat().st_size) for path in paths]
    done = stages.run("checksums", run_checksum_job, jobs, report=False)
    return {job.path: sha256 for job, sha256 in done}


def run_checksum_job(job: ChecksumJob) -> str:
    """Return the SHA-256 of a file."""
    return checksum(job.path)


class ChecksumCache:
    """SHA-256 of files, remembered where their size and time of change are the same."""

    def __init__(self, cache: Path, stages: Stages) -> None:
        self._path = cache
        self._stages = stages
        self._cache = _read_cache(cache)
        self._stamps: dict[Path, Stamp] = {}

    def of(self, paths: Iterable[Path]) -> dict[Path, str]:
        """Return {file: its SHA-256}."""
        stamps = {path: _stamp(path) for path in paths}
        self._stamps |= stamps
        known = {path: self._remembered(path, stamp) for path, stamp in stamps.items()}
        new = checksums_of([path for path, sha256 in known.items() if sha256 is None], self._stages)
        for path, sha256 in new.items():
            size, modified = stamps[path]
            if time.time_ns() - modified > _SETTLED_NS:
                self._cache[str(path.resolve())] = [size, modified, sha256]
        return {path: sha256 or new[path] for path, sha256 in known.items()}

    def _remembered(self, path: Path, stamp: Stamp) -> str | None:
        entry = self._cache.get(str(path.resolve()))
        return str(entry[2]) if entry is not None and entry[:2] == list(stamp) else None

    def save(self) -> None:
        """Write the cache."""
        write_json(self._path, self._cache)

    def check_unchanged(self) -> None:
        """Check that the files have not changed since `of` saw them.

        Raises:
            DataError: If a file has changed; the message names it.
        """
        for path, stamp in self._stamps.items():
            if not path.exists() or _stamp(path) != stamp:
                raise DataError(f"{path}: changed while it was read; run `mnmt-data prepare` again.")


def _stamp(path: Path) -> Stamp:
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns


def _read_cache(path: Path) -> dict[str, list[int | str]]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}
