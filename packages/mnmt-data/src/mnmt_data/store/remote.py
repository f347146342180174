"""Files at URLs (s3, gs, http, …), fetched once through fsspec and kept in a cache.

Text is read several times, by several processes, and shards are mapped into memory. So a file is fetched
whole, and what reads it knows only files on disk.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import Any

from mnmt_data.errors import DataError, missing_extra, one_line
from mnmt_data.store.lock import file_lock

logger = logging.getLogger(__name__)

_URL = re.compile(r"([a-z][a-z0-9+.-]+):/+(?=[^/])")
"""A protocol of two letters or more; `Path` leaves one slash of two."""

_STAMP = ("size", "ETag", "etag", "mtime", "LastModified", "Last-Modified", "updated", "created", "blob_id")
"""What file systems tell of a file that changes with its content."""


def is_url(source: str | Path) -> bool:
    """Return whether a source is a URL, such as `s3://bucket/train.en-de.tsv.gz`."""
    return _URL.match(str(source)) is not None


def normal_url(url: str | Path) -> str:
    """Return a URL with both slashes, of which `Path` leaves one, and none at its end; a path as it is."""
    return _URL.sub(lambda match: f"{match[1]}://", str(url)).rstrip("/")


def matches(pattern: str) -> list[str]:
    """Return the URLs that match a pattern, sorted; only `*` is a wildcard. It needs a listing.

    Raises:
        DataError: If the folder cannot be listed.
    """
    system, path = _open(pattern)
    protocol = _URL.match(pattern)
    assert protocol is not None
    names = _try(pattern, lambda: system.glob(re.sub(r"([?[\]])", r"[\1]", path)))
    return sorted(name if is_url(name) else f"{protocol[1]}://{name.lstrip('/')}" for name in names)


def local_copy(url: str, *, folder: Path | None = None) -> Path:
    """Return the copy on this machine of the file at a URL; fetch it unless it is there and still the same.

    Processes may call it at once. If the file cannot be reached, an earlier copy is used, with a warning.

    Args:
        url: The file.
        folder: Where to put it; by default a folder of the cache that is named after the URL.

    Raises:
        DataError: If there is no such file, it cannot be reached, or a library for it is missing.
    """
    copy = (folder or cache_folder(url)) / url.partition("?")[0].rpartition("/")[2]
    copy.parent.mkdir(parents=True, exist_ok=True)
    record = copy.with_name(f".{copy.name}.fetched.json")
    with file_lock(copy.with_name(f".{copy.name}.lock"), name=copy, seconds=-1):
        try:
            system, path = _open(url)
            info = _try(url, lambda: system.info(path))
        except DataError as error:
            if isinstance(error.__cause__, FileNotFoundError) or not record.is_file():
                raise
            logger.warning("%s; its copy %s is used", str(error).partition(";")[0], copy)
            return copy
        stamp = json.dumps(_stamp(info))
        if not (copy.is_file() and record.is_file() and record.read_text(encoding="utf-8") == stamp):
            record.unlink(missing_ok=True)
            fetch(url, copy, size=info.get("size"))
            record.write_text(stamp, encoding="utf-8")
    return copy


def local_folder(url: str | Path, is_wanted: Callable[[str], bool]) -> Path:
    """Return a folder of the cache with copies of the files at a URL whose names are wanted, and no others.

    Raises:
        DataError: If the URL cannot be listed, or a file cannot be fetched.
    """
    source = normal_url(url)
    folder = cache_folder(f"{source}/")
    urls = [each for each in matches(f"{source}/*") if is_wanted(each.rpartition("/")[2])]
    copies = {local_copy(each, folder=folder) for each in urls}
    for path in folder.glob("[!.]*"):
        if path not in copies and is_wanted(path.name):
            path.unlink()
    return folder


def fetch(url: str, path: Path, *, size: int | None) -> None:
    """Fetch a file of `size` bytes, None if unknown, which takes its name once it is whole.

    Raises:
        DataError: If it cannot be fetched, or comes in another size.
    """
    from fsspec.callbacks import TqdmCallback

    logger.warning("fetching %s%s", url, f", {size / 2**20:,.0f} MiB" if size and size >= 2**20 else "")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    bar = TqdmCallback(tqdm_kwargs={"unit": "B", "unit_scale": True, "disable": None, "leave": False})
    system, source = _open(url)
    _try(url, lambda: system.get_file(source, str(part), callback=bar))
    if size is not None and part.stat().st_size != size:
        what = f"must have {size:,} bytes, but {part.stat().st_size:,} came"
        raise DataError(f"{url}: {what}; it was cut off or has changed.")
    part.replace(path)


def cache_folder(url: str) -> Path:
    """Return the folder for the file at a URL: `~/.cache/mnmt-data`, the host, and a hash of its folder."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mnmt-data"
    place, _, query = url.partition("?")
    protocol, _, path = place.rpartition("/")[0].partition("://")
    host = re.sub(r"[^\w.-]", "_", path.partition("/")[0]) or protocol
    return cache / host / sha256(f"{place.rpartition('/')[0]}?{query}".encode()).hexdigest()[:12]


def _open(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it."""
    try:
        import fsspec
        from aiohttp import ClientTimeout
    except ImportError:
        raise DataError(f"{url}: {missing_extra('remote')}.") from None
    options: dict[str, Any] = {}
    if url.startswith("http"):  # aiohttp ends a transfer after five minutes, also one that gets on
        options["client_kwargs"] = {"timeout": ClientTimeout(total=None, sock_connect=30, sock_read=120)}
    system, path = _try(url, lambda: fsspec.core.url_to_fs(url, **options))
    return system, path


def _try(url: str, call: Callable[[], Any]) -> Any:
    """Return what a call of fsspec returns; its file systems raise errors of many libraries."""
    try:
        return call()
    except ImportError as error:
        needed = re.search(r"[Ii]nstall (\w+)", str(error))
        remedy = f"needs {needed[1]}: pip install {needed[1]}" if needed else one_line(error)
        raise DataError(f"{url}: {remedy}.") from None
    except Exception as error:
        # To fsspec no file of a server that does not answer is found.
        reason = error.__cause__ or error if isinstance(error, FileNotFoundError) else error
        if isinstance(reason, FileNotFoundError) or getattr(reason, "status", None) == HTTPStatus.NOT_FOUND:
            raise DataError(f"{url}: no such file there; see to its name.") from FileNotFoundError(url)
        what = f"{url}: cannot be had ({one_line(reason)})"
        raise DataError(f"{what}; see to its name, your rights and the network.") from reason


def _stamp(info: dict[str, Any]) -> dict[str, Any]:
    """Return what tells one content of a file from another."""
    return {
        key: info[key] if key == "size" else str(info[key]) for key in _STAMP if info.get(key) is not None
    }
