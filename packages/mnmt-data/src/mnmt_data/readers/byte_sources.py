"""Files, plain or compressed, and members of zip archives, read in bounded chunks."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol
from zipfile import BadZipFile, ZipFile

from mnmt_data.errors import DataError, folder_holds, one_line
from mnmt_data.store.remote import is_url, local_copy

CHUNK_BYTES = 2**18
"""Small enough for a chunk and its text to stay in the processor's cache."""

CODECS = MappingProxyType({".gz": "gzip", ".zst": "zstd", ".xz": "xz", ".bz2": "bzip2"})
"""Codecs by the ending of a file's name. All read several members and detect truncation."""

ZIP = "a zip archive"
PARQUET = "Parquet"

_SIGNATURES = {
    "gzip": re.compile(rb"\x1f\x8b"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),  # a frame, or one to skip
    "xz": re.compile(rb"\xfd7zXZ\0"),
    "bzip2": re.compile(rb"BZh[1-9]"),
    ZIP: re.compile(rb"PK[\x03\x05]"),
    PARQUET: re.compile(b"PAR1"),
    "PDF": re.compile(b"%PDF-"),
    "a tar archive": re.compile(rb".{257}ustar", re.S),
    "a pointer of Git LFS": re.compile(b"version https://git-lfs"),
}
_LARGEST_WINDOW = 31
"""Logarithm of the largest window of zstd, 2 GiB, which `zstd --long=31` packs with."""

_BYTES_AFTER = ("Not a gzipped file", "Unknown frame descriptor")
"""What libraries say of bytes after a member that are no other one."""

_CONTENT_ERRORS = (EOFError, zlib.error, lzma.LZMAError, OSError)
_ZIP_ERRORS = (BadZipFile, NotImplementedError, RuntimeError, *_CONTENT_ERRORS)


class ByteSource(Protocol):
    """A file, or part of one, that can be read from its start any number of times."""

    @property
    def path(self) -> Path:
        """The file on disk."""
        ...

    @property
    def name(self) -> str:
        """Name for messages."""
        ...

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes, decompressed, at most `CHUNK_BYTES` at a time."""
        ...


@dataclass(frozen=True)
class File:
    """A file, decompressed according to the ending of its name."""

    path: Path

    @property
    def name(self) -> str:
        """The path."""
        return str(self.path)

    def chunks(self) -> Iterator[bytes]:
        """Yield the content.

        Raises:
            DataError: If the file is missing, cannot be read, is cut off or damaged, or its name belies its
                codec.
        """
        codec = CODECS.get(self.path.suffix.lower())
        check_is_file(self.path)
        try:
            if codec is not None:
                _check_kind(self.path, codec)
            with _OPENERS[codec](self.path) as stream:
                while chunk := stream.read(CHUNK_BYTES):
                    yield chunk
        except _CONTENT_ERRORS as error:
            raise DataError(unreadable(self.path, codec, error)) from None

    def read(self) -> bytes:
        """Return the whole content; see `chunks`."""
        return b"".join(self.chunks())


@dataclass(frozen=True)
class ZipMember:
    """One file in a zip archive, which is never unpacked."""

    path: Path
    member: str

    @property
    def name(self) -> str:
        """The archive and the member."""
        return f"{self.path}({self.member})"

    def chunks(self) -> Iterator[bytes]:
        """Yield the content.

        Raises:
            DataError: If the archive is cut off, damaged or encrypted.
        """
        try:
            with ZipFile(self.path) as archive, archive.open(self.member) as stream:
                while chunk := stream.read(CHUNK_BYTES):
                    yield chunk
        except _ZIP_ERRORS as error:
            raise DataError(unreadable(self.path, ZIP, error)) from None


@contextmanager
def _open_zstd(path: Path) -> Iterator[Any]:
    """Open a file that zstd packed, whatever its window."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    options = {int(zstd.DecompressionParameter.window_log_max): _LARGEST_WINDOW}
    try:
        with zstd.open(path, options=options) as stream:
            yield stream
    except zstd.ZstdError as error:
        raise OSError(str(error)) from None


_OPENERS: dict[str | None, Callable[[Path], AbstractContextManager[Any]]] = {
    None: partial(open, mode="rb", buffering=0),
    "gzip": gzip.open,
    "xz": lzma.open,
    "bzip2": bz2.open,
    "zstd": _open_zstd,
}


def path_of(source: str) -> Path:
    """Return the path that a study names, or the local copy of the file at a URL; `~` is the home folder.

    Raises:
        DataError: If it begins with the `~` of an unknown user, or the URL has no file that can be fetched.
    """
    if is_url(source):
        return local_copy(source)
    try:
        return Path(source).expanduser()
    except RuntimeError:
        raise DataError(f"{source}: no such user; write the path in full.") from None


def plain_name(path: Path) -> str:
    """Return the name of a file without the ending of a codec."""
    return path.stem if path.suffix.lower() in CODECS else path.name


def check_is_file(path: Path) -> None:
    """Check that a path is a file.

    Raises:
        DataError: If it is missing or a folder; the message names it.
    """
    if path.is_dir():
        raise DataError(f"{path}: is a folder; name a file in it.")
    if not path.exists():
        raise DataError(f"{path}: no such file; {folder_holds(path)}.")


def members(path: Path) -> list[str]:
    """Return the names of the files in a zip archive.

    Raises:
        DataError: If the archive is missing, cut off or damaged.
    """
    check_is_file(path)
    try:
        with ZipFile(path) as archive:
            return [member.filename for member in archive.infolist() if not member.is_dir()]
    except _ZIP_ERRORS as error:
        raise DataError(unreadable(path, ZIP, error)) from None


def kind_of(head: bytes) -> str | None:
    """Return the format that the first bytes of a file show: a codec, `ZIP`, `PARQUET` and so on, or None."""
    return next((kind for kind, signature in _SIGNATURES.items() if signature.match(head)), None)


def _check_kind(path: Path, kind: str) -> None:
    """Check that the first bytes of a file are those of a format.

    Raises:
        DataError: If they are not; the message names the format that they show.
    """
    with path.open("rb") as file:
        head = file.read(8)
    if not head:
        raise DataError(f"{path}: is empty, which {kind} never is; write or fetch it again.")
    if (actual := kind_of(head)) == kind:
        return
    endings = [ending for ending, codec in CODECS.items() if codec == actual]
    remedy = f"let its name end in {endings[0]}" if endings else "give it the ending of what it is"
    what = f"is {actual}, not {kind}" if actual else f"is not {kind}, though its name says so"
    raise DataError(f"{path}: {what}; {remedy}.")


def unreadable(path: Path, kind: str | None, error: Exception) -> str:
    """Describe in one line why a library cannot read a file; `kind` is its format, None for plain text."""
    reason = one_line(error)
    if kind is None or getattr(error, "errno", None) is not None:
        return f"{path}: cannot be read ({reason}); check the file and its permissions."
    if kind in _SIGNATURES:
        try:
            _check_kind(path, kind)
        except DataError as other:
            return str(other)
    what = f"{path}: cannot be read as {kind} ({reason})"
    if isinstance(error, (NotImplementedError, RuntimeError)):  # encrypted, or packed by a rare method
        return f"{what}; write it anew without that."
    if any(sign in reason for sign in _BYTES_AFTER):
        return f"{path}: other bytes follow its {kind} data ({reason}); remove them or fetch it again."
    if isinstance(error, EOFError):
        return f"{what}; it is cut off, fetch it again."
    return f"{what}; it is cut off or damaged, fetch it again."
