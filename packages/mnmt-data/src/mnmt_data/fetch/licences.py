"""The licences of Debian packages, as their copyright files state them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from mnmt_data.fetch.apt import Apt, link_target, members

_MOST_LINKS = 3
"""Links from one package's documentation to another's that are followed."""
_FORMAT = re.compile(r"^Format:", re.MULTILINE)
_FIELD = re.compile(r"^License:[ \t]*(\S.*?)[ \t]*$", re.MULTILINE)
_COMMON = re.compile(r"/usr/share/common-licenses/([A-Za-z][\w.+-]*\w)")


def licences(copyright_file: str) -> tuple[str, ...]:
    """Return the licences that a copyright file names, each once, sorted.

    In Debian's machine-readable format these are the first lines of its `License` fields, such as
    `GPL-2+ or Artistic-1` (copyright-format 1.0, section 7); in any other file, the licences it refers to in
    /usr/share/common-licenses.
    """
    pattern = _FIELD if _FORMAT.search(copyright_file) else _COMMON
    return tuple(sorted(set(pattern.findall(copyright_file))))


def copyright_file(apt: Apt, package: Path) -> str:
    """Return the copyright file of a package, or of the one that its documentation links to, or `""`.

    Raises:
        DataError: If a package is broken, or the one linked to cannot be fetched.
    """
    for _ in range(_MOST_LINKS):
        place = rf"^\./usr/share/doc/{re.escape(package.name.partition('_')[0])}"
        for _, content in members(package, re.compile(rf"{place}/copyright$")):
            return content.decode("utf-8", "replace")
        if (target := link_target(package, re.compile(rf"{place}(/copyright)?$"))) is None:
            return ""
        (package,) = apt.download([_package(PurePosixPath(target))])
    return ""


def _package(target: PurePosixPath) -> str:
    """Return the package that a link in /usr/share/doc leads to: gcc-base of `../gcc-base/copyright`."""
    names: Sequence[str] = [part for part in target.parts if part not in ("..", "/", "copyright")]
    return names[-1]
