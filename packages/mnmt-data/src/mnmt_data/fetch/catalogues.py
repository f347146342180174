"""Gettext catalogues, found as `LANG/LC_MESSAGES/DOMAIN.mo` or `po/LANG.po`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mnmt_data.errors import DataError
from mnmt_data.readers.catalogue import String, mo_strings, po_strings
from mnmt_data.readers.language_codes import gettext_language

ENDINGS = (".po", ".mo")
"""Endings of catalogues, the preferred first: a `.mo` is compiled from a `.po`."""

MESSAGES = "LC_MESSAGES"

_ENGLISH_AGAIN = frozenset({"en", "en@quot", "en@boldquot"})
"""Languages of catalogues that repeat the English strings, perhaps with other quotes."""

_TAG = r"[a-z]{2,3}(?:[_-](?:[A-Z]{2}|[A-Z][a-z]{3}|[0-9]{3}))*(?:\.[\w-]+)?(?:@\w+)?"
_LANGUAGE = re.compile(_TAG)
_ENDING = re.compile(rf"(?P<domain>.+?)[._-](?P<language>{_TAG})")
_HEADER = re.compile(rb"[\n\"\0]Language: *([\w@.-]+)")


@dataclass(frozen=True, kw_only=True)
class CatalogueFile:
    """A catalogue on disk."""

    path: Path
    domain: str
    """The path without its language, which is the same for all languages of a program."""
    language: str
    """As `gettext_language` writes it."""

    def strings(self) -> list[String]:
        """Read its strings, singulars and plurals.

        Raises:
            DataError: If the file is broken.
        """
        if self.path.suffix == ".po":
            return po_strings(self.path)
        return mo_strings(self.path.read_bytes(), str(self.path))


def find_catalogues(folder: Path, *, report: Callable[[str], None]) -> list[CatalogueFile]:
    """Find the catalogues in a folder and below, one for each domain and language.

    The language is the folder above `LC_MESSAGES`; or the file's name, unless the header names that of a
    folder, as for `gui` in `de/gui.po`; or the header's; or the end of the name, as in `gimp-de.po`.
    Catalogues in English, the source language of all, are skipped.

    Args:
        folder: The folder.
        report: Called with a line about each file whose language is unknown.

    Returns:
        The catalogues, by path.

    Raises:
        DataError: If the folder does not exist.
    """
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder; name one with .po or .mo files.")
    catalogues: dict[tuple[str, str], CatalogueFile] = {}
    for path in _files(folder):
        if (place := _place(path, folder)) is None:
            report(f"{path}: neither its name nor its header names its language, left out")
            continue
        domain, language = place
        if language not in _ENGLISH_AGAIN:
            catalogues.setdefault(place, CatalogueFile(path=path, domain=domain, language=language))
    return list(catalogues.values())


def _files(folder: Path) -> Iterator[Path]:
    for ending in ENDINGS:
        yield from sorted(path for path in folder.rglob(f"*{ending}") if path.is_file())


def _place(path: Path, folder: Path) -> tuple[str, str] | None:
    """Return the domain and the language of a file, or None if its language is unknown."""
    *folders, _ = path.relative_to(folder).parts
    stem = path.stem
    if folders[-1:] == [MESSAGES] and len(folders) > 1:
        return _domain([*folders[:-2], stem]), gettext_language(folders[-2])
    if _LANGUAGE.fullmatch(stem) and not _is_in_folder_of_language(path, folders):
        return _domain(folders), gettext_language(stem)
    ending = _ENDING.fullmatch(stem)
    ending_language = gettext_language(ending["language"]) if ending else ""
    language = _header_language(path) or ending_language
    if not language:
        return None
    if ending and ending_language == language:
        stem = ending["domain"]
    return _domain([*(part for part in folders if gettext_language(part) != language), stem]), language


def _is_in_folder_of_language(path: Path, folders: list[str]) -> bool:
    """Return whether the language in a file's header is that of a folder above it."""
    of_folders = {gettext_language(name) for name in folders if _LANGUAGE.fullmatch(name)}
    return bool(of_folders) and _header_language(path) in of_folders


def _header_language(path: Path) -> str:
    match = _HEADER.search(path.read_bytes())
    locale = match[1].decode("latin-1") if match else ""
    return gettext_language(locale) if _LANGUAGE.fullmatch(locale) else ""


def _domain(parts: Iterable[str]) -> str:
    return "/".join(parts)
