"""Gettext catalogues: read their strings, and find them as `LANG/LC_MESSAGES/DOMAIN.mo` or `po/LANG.po`."""

from __future__ import annotations

import gettext
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polib

from mnmt_data.errors import DataError
from mnmt_data.readers.language_codes import gettext_language

String = tuple[str, str, str]
"""Context, English and translation."""

SEVERAL = 5
"""The number whose plural form in another language translates the English plural.

Languages with more than two forms keep some of them for 2, 3 and 4 (Slavic) or for 2 (Slovenian, Arabic).
"""

CREDITS = frozenset({"translator-credits", "NAME OF TRANSLATORS", "EMAIL OF TRANSLATORS"})
"""English strings and contexts for the names of translators, which are not translations."""

ENDINGS = (".po", ".mo")
"""Endings of catalogues, the preferred first: a `.mo` is compiled from a `.po`."""

MESSAGES = "LC_MESSAGES"

_ENGLISH_AGAIN = frozenset({"en", "en@quot", "en@boldquot"})
"""Languages of catalogues that repeat the English strings, perhaps with other quotes."""

_TAG = r"[a-z]{2,3}(?:[_-](?:[A-Z]{2}|[A-Z][a-z]{3}|[0-9]{3}))*(?:\.[\w-]+)?(?:@\w+)?"
_LANGUAGE = re.compile(_TAG)
_ENDING = re.compile(rf"(?P<domain>.+?)[._-](?P<language>{_TAG})")
_HEADER = re.compile(rb"[\n\"\0]Language: *([\w@.-]+)")
_PLURAL = re.compile(r"plural\s*=\s*([^;\n]+)")


def mo_strings(content: bytes, name: str, *, plurals: bool = True) -> list[String]:
    """Read the translated strings of a `.mo` file, except the names of translators.

    A message with a plural gives two strings: the singular with the form for 1, and the plural with the form
    for `SEVERAL`. The form for 1 is not always the first: in Arabic it is the second.

    Args:
        content: The file.
        name: Its name in messages.
        plurals: Whether to read plurals too.

    Raises:
        DataError: If it is not such a file, truncated, or not in the character set of its header.
    """
    with _explain(name):
        catalogue = polib.mofile(content)
        if not content.endswith(b"\0"):  # polib does not notice a truncated file
            raise ValueError("it is cut off")
        return list(_strings(catalogue, catalogue, plurals=plurals))


def po_strings(path: Path) -> list[String]:
    """Read the strings of a `.po` file as `mo_strings` does, without fuzzy and obsolete entries.

    Raises:
        DataError: If it cannot be parsed, or is not in the character set of its header.
    """
    with _explain(str(path)):
        catalogue = polib.pofile(str(path))
        entries = (entry for entry in catalogue if not (entry.obsolete or entry.fuzzy))
        return list(_strings(catalogue, entries, plurals=True))


def _strings(catalogue: Any, entries: Iterable[Any], *, plurals: bool) -> Iterator[String]:
    rule = _plural_rule(catalogue.metadata.get("Plural-Forms", ""))
    for entry in entries:
        context, english = entry.msgctxt or "", entry.msgid
        if context in CREDITS or english in CREDITS:
            continue
        forms = entry.msgstr_plural
        if text := forms.get(rule(1)) if entry.msgid_plural else entry.msgstr:
            yield context, english, text
        if plurals and entry.msgid_plural and (text := forms.get(rule(SEVERAL))):
            yield context, entry.msgid_plural, text


def _plural_rule(forms: str) -> Callable[[int], int]:
    """Return the function from a number to its plural form; English's if `forms` is invalid."""
    match = _PLURAL.search(forms.partition(";")[2])
    try:
        rule: Callable[[int], int] = gettext.c2py(match[1].strip()) if match else _germanic
        works = rule(1) >= 0 and rule(SEVERAL) >= 0
    except (ValueError, ZeroDivisionError):
        works = False
    return rule if works else _germanic


def _germanic(number: int) -> int:
    return int(number != 1)


@contextmanager
def _explain(name: str) -> Iterator[None]:
    """Turn the errors of a broken catalogue into a DataError that names it."""
    try:
        yield
    except (OSError, ValueError, LookupError, struct.error) as error:
        what = f"cannot be read as a gettext catalogue ({str(error).strip().rstrip('.')})"
        raise DataError(f"{name}: {what}; mend it as `msgfmt --check` says.") from None


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
