"""Files, plain or compressed, and members of zip archives, read in bounded chunks."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from lzma import LZMAError
from pathlib import Path
from typing import BinaryIO, Protocol, cast
from zipfile import BadZipFile, ZipFile

import pyarrow as pa

from mnmt_data.errors import DataError, folder_holds

CHUNK_BYTES = 2**18
"""Small enough for a chunk and its text to stay in the processor's cache."""

CODECS = {".gz": "gzip", ".zst": "zstd"}
"""Arrow's codecs, by the ending of a file's name. They read several members and detect truncation."""

_ZIP_ERRORS = (BadZipFile, EOFError, NotImplementedError, RuntimeError, OSError, zlib.error, LZMAError)


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
            DataError: If the file is missing, cannot be read, or is truncated or damaged.
        """
        codec = CODECS.get(self.path.suffix)
        check_is_file(self.path)
        try:
            with self._open_stream(codec) as stream:
                while chunk := stream.read(CHUNK_BYTES):
                    yield chunk
        except (OSError, pa.ArrowException) as error:
            raise DataError(unreadable(self.path, codec, error)) from None

    def _open_stream(self, codec: str | None) -> BinaryIO:
        if codec is None:
            return cast("BinaryIO", self.path.open("rb", buffering=0))
        if self.path.stat().st_size == 0:
            raise OSError("it is empty")
        return cast("BinaryIO", pa.CompressedInputStream(pa.OSFile(str(self.path)), codec))


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
            DataError: If the archive is truncated, damaged or encrypted.
        """
        try:
            with ZipFile(self.path) as archive, archive.open(self.member) as stream:
                while chunk := stream.read(CHUNK_BYTES):
                    yield chunk
        except _ZIP_ERRORS as error:
            raise DataError(unreadable(self.path, "a zip", error)) from None


def path_of(source: str) -> Path:
    """Return the path that a study names; `~` is the home folder.

    Raises:
        DataError: If it begins with the `~` of an unknown user.
    """
    try:
        return Path(source).expanduser()
    except RuntimeError:
        raise DataError(f"{source}: no such user; write the path in full.") from None


def check_is_file(path: Path) -> None:
    """Check that a path is a file.

    Raises:
        DataError: If it is missing or a folder; the message names it.
    """
    if path.is_dir():
        raise DataError(f"{path}: is a folder; name a file in it.")
    if not path.exists():
        raise DataError(f"{path}: no such file; mend the path or fetch the corpus; {folder_holds(path)}.")


def members(path: Path) -> list[str]:
    """Return the names of the files in a zip archive.

    Raises:
        DataError: If the archive is missing, truncated or damaged.
    """
    check_is_file(path)
    try:
        with ZipFile(path) as archive:
            return [member.filename for member in archive.infolist() if not member.is_dir()]
    except _ZIP_ERRORS as error:
        raise DataError(unreadable(path, "a zip", error)) from None


def unreadable(path: Path, kind: str | None, error: Exception) -> str:
    """Describe in one line why a library cannot read a file; `kind` is its format, None for plain text."""
    if kind is None:
        return f"{path}: cannot be read ({one_line(error)}); check the file and its permissions."
    what = f"cannot be read as {kind} ({one_line(error)})"
    return f"{path}: {what}; it is truncated or damaged, fetch it again."


def one_line(error: Exception) -> str:
    """Return the first line of a library's message."""
    text = getattr(error, "strerror", None) or str(error)
    return text.strip().partition("\n")[0].rstrip(".") or type(error).__name__
