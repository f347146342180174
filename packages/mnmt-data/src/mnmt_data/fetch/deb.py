"""Files inside a Debian package."""

from __future__ import annotations

import re
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from mnmt_data.errors import DataError


def package_version(package: Path) -> str:
    """Version in the name of a package's file, where apt writes a colon as %3a."""
    return package.name.split("_")[1].replace("%3a", ":")


def members(package: Path, path: re.Pattern[str]) -> Iterator[tuple[re.Match[str], bytes]]:
    """`(match, content)` of the package's files where `path` is found in the name, read in one pass.

    Raises:
        DataError: If the package is broken, or this system cannot unpack it.
    """
    command = ["dpkg-deb", "--fsys-tarfile", str(package)]
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except FileNotFoundError:
        raise DataError("dpkg-deb: no such command; only a Debian system can fetch this corpus.") from None
    with process:
        output = cast(IO[bytes], process.stdout)
        try:
            with tarfile.open(fileobj=output, mode="r|") as archive:
                yield from _matching(archive, path)
        except tarfile.TarError as error:
            raise DataError(f"{package}: cannot be unpacked ({error}); delete it and fetch again.") from None
        # What pads the archive; with no reader for it, dpkg-deb would fail.
        output.read()
    if process.returncode:
        raise DataError(f"{package}: cannot be unpacked; delete it and fetch again.")


def _matching(archive: tarfile.TarFile, path: re.Pattern[str]) -> Iterator[tuple[re.Match[str], bytes]]:
    for member in archive:
        if (match := path.search(member.name)) and (file := archive.extractfile(member)):
            yield match, file.read()
