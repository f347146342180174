"""The strings of a gettext catalogue, in a `.po` or `.mo` file."""

from __future__ import annotations

import gettext
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polib

from mnmt_data.errors import DataError
from mnmt_data.readers.byte_sources import ByteSource, File
from mnmt_data.readers.columns import sentence_of
from mnmt_data.readers.language_codes import base_language, languages, opposite, serves
from mnmt_data.readers.language_codes import is_reversed as name_is_reversed
from mnmt_data.readers.units import NoPair, Unit, UnitPairs

String = tuple[str, str, str]
"""Context, English and translation."""

SEVERAL = 5
"""The number whose plural form in another language translates the English plural.

Languages with more than two forms keep some of them for 2, 3 and 4 (Slavic) or for 2 (Slovenian, Arabic).
"""

CREDITS = frozenset({"translator-credits", "NAME OF TRANSLATORS", "EMAIL OF TRANSLATORS"})
"""English strings and contexts for the names of translators, which are not translations."""

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
        return list(_strings(catalogue, _plural_rule(catalogue), plurals=plurals))


def po_strings(path: Path) -> list[String]:
    """Read the strings of a `.po` file as `mo_strings` does, without fuzzy and obsolete entries.

    Raises:
        DataError: If it cannot be parsed, or is not in the character set of its header.
    """
    with _explain(str(path)):
        catalogue = polib.pofile(str(path))
        entries = (entry for entry in catalogue if not (entry.obsolete or entry.fuzzy))
        return list(_strings(entries, _plural_rule(catalogue), plurals=True))


def po_pairs(path: Path, task: str) -> UnitPairs:
    """Return a reader of a `.po` file, whose header says which side of the task its translations are."""
    return UnitPairs(File(path), task, _units)


def _units(source: ByteSource, task: str) -> Iterator[Unit]:
    with _explain(source.name):
        catalogue = polib.pofile(str(source.path))
    rule, is_reversed = _plural_rule(catalogue), _is_reversed(catalogue, source, task)
    for entry in catalogue:
        if entry.obsolete or entry.fuzzy:
            yield NoPair("are fuzzy or obsolete")
            continue
        strings = list(_strings([entry], rule, plurals=True))
        if not strings:
            yield NoPair("are not translated")
        for _, english, translation in strings:
            src, tgt = (sentence_of(text) for text in (english, translation))
            yield (tgt, src) if is_reversed else (src, tgt)


def _is_reversed(catalogue: Any, source: ByteSource, task: str) -> bool:
    """Return whether translations are the task's source, by the header's language or else the file's name.

    Raises:
        DataError: If the languages are not those of the task, or unknown.
    """
    english, language = (
        catalogue.metadata.get(field, "").strip() for field in ("X-Source-Language", "Language")
    )
    for pair, is_reversed in ((task, False), (opposite(task), True)):
        src, tgt = languages(pair)
        is_named = name_is_reversed(source.path.name, opposite(pair))
        is_source = serves(english, src) if english else base_language(src) == "en"
        if is_source and serves(language, tgt) if language else is_named:
            return is_reversed
    what = f"is from {english or 'en'} to {language or 'no language'} by its header, not of {task}"
    raise DataError(f"{source.name}: {what}; mend its field Language.")


def _strings(entries: Iterable[Any], rule: Callable[[int], int], *, plurals: bool) -> Iterator[String]:
    for entry in entries:
        context, english = entry.msgctxt or "", entry.msgid
        if context in CREDITS or english in CREDITS:
            continue
        forms = entry.msgstr_plural
        if text := forms.get(rule(1)) if entry.msgid_plural else entry.msgstr:
            yield context, english, text
        if plurals and entry.msgid_plural and (text := forms.get(rule(SEVERAL))):
            yield context, entry.msgid_plural, text


def _plural_rule(catalogue: Any) -> Callable[[int], int]:
    """Return the function from a number to its plural form; English's if the header has no valid one."""
    match = _PLURAL.search(catalogue.metadata.get("Plural-Forms", "").partition(";")[2])
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
