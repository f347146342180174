"""LibreOffice's packages of each language, found in apt's lists by their prefix."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from mnmt_data.errors import DataError
from mnmt_data.fetch.apt import Apt, Progress, Report, members
from mnmt_data.fetch.config import LanguageSelection
from mnmt_data.fetch.languages import ENGLISH, plain

LICENCE = "MPL-2.0, as the packages state"

TextUnits = dict[tuple[str, ...], str]
"""{(file, id within the file): text}"""


class LanguagePackages:
    """The packages `PREFIX` + language, such as `libreoffice-help-de`."""

    def __init__(self, prefix: str, folder: Path, *, report: Report, progress: Progress) -> None:
        """Update apt's lists.

        Args:
            prefix: First part of the names of the packages.
            folder: Folder of downloads.
            report: Called with a line at each stage.
            progress: Called with the name of a stage and the number of files that it has just done.

        Raises:
            DataError: If this is not a Debian system, or the lists have no such package.
        """
        self._apt = Apt(folder, report=report, progress=progress)
        self._report = report
        report(f"looking for {prefix}* in apt's lists")
        self._apt.update()
        names = {plain(name.removeprefix(prefix)): name for name in self._apt.names(prefix)}
        self._packages = {language: name for language, name in names.items() if language != "common"}

    @property
    def languages(self) -> list[str]:
        """Languages with a package, English as `en`."""
        return list(self._packages)

    def download(self, languages: list[str]) -> dict[str, Path]:
        """Download the package of each language, and return {language: file}.

        Raises:
            DataError: If one cannot be fetched.
        """
        names = [self._packages[language] for language in languages]
        self._report(f"fetching {len(names)} packages")
        return dict(zip(languages, self._apt.download(names), strict=True))


def read_units(
    package: Path,
    path: re.Pattern[str],
    units: Callable[[str, bytes], Iterator[tuple[tuple[str, ...], str]]],
    *,
    progress: Progress,
) -> TextUnits:
    """Read the units of text in a package.

    A package may also hold a variant of its language, such as `ca-valencia` in that of `ca`: the variant,
    with the longer name, is skipped.

    Args:
        package: A .deb.
        path: Pattern of the names of files with text, with groups `language` and `file`.
        units: Yields the units of a file, given its name and content.
        progress: Called with the name of the package for each file.

    Returns:
        The units, the first of each key; empty if the package has no such files.

    Raises:
        DataError: If the package is broken.
    """
    by_language: defaultdict[str, TextUnits] = defaultdict(dict)
    name = package.name.partition("_")[0]
    for match, content in members(package, path):
        for key, text in units(match["file"], content):
            by_language[match["language"]].setdefault(key, text)
        progress(name, 1)
    return by_language[min(by_language, key=len)] if by_language else {}


def read_languages(
    packages: Mapping[str, Path],
    selection: LanguageSelection,
    read: Callable[[Path], TextUnits],
    *,
    report: Report,
) -> Iterator[tuple[str, TextUnits]]:
    """Yield `(code, units)` of each selected language except English.

    An open-ended selection omits packages without text, which only depend on others.

    Raises:
        DataError: If a package requested by name has no text, or a package is broken.
    """
    for code, name in selection.names.items():
        if code == ENGLISH:
            continue
        if units := read(packages[name]):
            yield code, units
        elif selection.open_ended:
            report(f"{code}: its package has no text, left out")
        else:
            raise DataError(f"{packages[name]}: holds no text of this kind; leave {code} out of --langs.")
