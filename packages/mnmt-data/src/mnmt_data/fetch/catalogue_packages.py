"""Debian packages with gettext catalogues: their choice, their catalogues and their licences."""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path, PurePosixPath

from mnmt_data.errors import DataError
from mnmt_data.fetch.apt import Apt, Report, link_target, members, package_version
from mnmt_data.store.atomic_file import replace_folder

PACKAGE_LIST = "catalogue_packages.txt"
"""The list that ships with mnmt-data, beside this file."""
COPYRIGHT = "copyright"

_CATALOGUE = re.compile(r"\.[mp]o$")
_MOST_LINKS = 3
"""Most links to follow from one package's documentation to another's."""
_FORMAT = re.compile(r"^Format:", re.MULTILINE)
_FIELD = re.compile(r"^License:[ \t]*(\S.*?)[ \t]*$", re.MULTILINE)
_COMMON = re.compile(r"/usr/share/common-licenses/([A-Za-z][\w.+-]*\w)")


@dataclass(frozen=True, kw_only=True)
class CataloguePackage:
    """A package whose catalogues lie in a folder."""

    name: str
    version: str
    folder: Path
    """Folder of its catalogues, under their installed paths, and of its copyright file."""

    @property
    def copyright(self) -> str:
        """The copyright file; `""` if the package has none."""
        return (self.folder / COPYRIGHT).read_text(encoding="utf-8")

    @property
    def licences(self) -> tuple[str, ...]:
        """The licences that the copyright file names."""
        return licences(self.copyright)


def choose_packages(requested: str | None, apt: Apt, *, report: Report) -> list[str]:
    """Return the packages to fetch.

    Args:
        requested: Names of packages, separated by commas; None for the list in mnmt-data, without the
            packages that this release of Debian lacks.
        apt: The package lists.
        report: Called with a line about packages left out.

    Raises:
        DataError: If a requested package does not exist.
    """
    available = set(apt.names(""))
    if requested is None:
        return _shipped_packages(available, report=report)
    names = [name.strip() for name in requested.split(",")]
    for name in names:
        if name not in available:
            raise DataError(f"--packages: no {name!r} in apt's lists; `apt-cache search` finds names.")
    return list(dict.fromkeys(names))


def _shipped_packages(available: Collection[str], *, report: Report) -> list[str]:
    """Return the first of each line's alternatives that is available."""
    lines = files(__package__).joinpath(PACKAGE_LIST).read_text(encoding="utf-8").splitlines()
    names: list[str] = []
    missing: list[str] = []
    for alternatives in (line.split() for line in lines if line and not line.startswith("#")):
        name = next((name for name in alternatives if name in available), None)
        (missing if name is None else names).append(name or alternatives[0])
    if missing:
        report(f"not in this release, left out: {', '.join(missing)}")
    return names


def fetch_packages(apt: Apt, names: Sequence[str], folder: Path, *, report: Report) -> list[CataloguePackage]:
    """Download packages and extract their catalogues into `folder`, unless they are there.

    A package is deleted after extraction: its other files are many times larger.

    Raises:
        DataError: If a package cannot be fetched or unpacked.
    """
    packages: list[CataloguePackage] = []
    for name, file in zip(names, apt.files(names), strict=True):
        package = CataloguePackage(name=name, version=package_version(file), folder=folder / file.stem)
        if not package.folder.is_dir():
            (deb,) = apt.download([name])
            _unpack(apt, deb, package.folder)
            deb.unlink()
        report(f"{name} {package.version}: {_summary(package.licences)}")
        packages.append(package)
    return packages


def _unpack(apt: Apt, deb: Path, folder: Path) -> None:
    """Write the catalogues and the copyright file of a package into a folder, atomically."""
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    for match, content in members(deb, _CATALOGUE):
        path = partial / _inside(match.string, deb)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (partial / COPYRIGHT).write_text(copyright_file(apt, deb), encoding="utf-8")
    replace_folder(folder, partial)


def _inside(name: str, deb: Path) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise DataError(f"{deb}: the member {name!r} leads out of the package; do not trust it.")
    return path


def _summary(names: Sequence[str], *, most: int = 6) -> str:
    """Return the first licences and the number of others, as text."""
    if not names:
        return "its copyright file names no licence in a form that is known; read it"
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def licences(copyright_file: str) -> tuple[str, ...]:
    """Return the distinct licences in a copyright file, sorted.

    In Debian's machine-readable format these are the first lines of its `License` fields, such as
    `GPL-2+ or Artistic-1` (copyright-format 1.0, section 7); in any other file, its references to files in
    /usr/share/common-licenses.
    """
    pattern = _FIELD if _FORMAT.search(copyright_file) else _COMMON
    return tuple(sorted(set(pattern.findall(copyright_file))))


def copyright_file(apt: Apt, package: Path) -> str:
    """Return the copyright file of a package, or of a package that its documentation links to, or `""`.

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
    """Return the package in the target of a link in /usr/share/doc: gcc-base for `../gcc-base/copyright`."""
    names = [part for part in target.parts if part not in ("..", "/", "copyright")]
    return names[-1]
