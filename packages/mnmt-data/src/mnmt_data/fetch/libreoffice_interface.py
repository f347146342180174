"""LibreOffice's interface: labels, menus, messages and tips out of its gettext catalogues."""

from __future__ import annotations

import gettext
import io
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from mnmt_data.errors import DataError
from mnmt_data.fetch.apt import package_version
from mnmt_data.fetch.config import ENGLISH, FetchConfig
from mnmt_data.fetch.libreoffice import LICENCE, LanguagePackages, TextUnits, read_languages, read_units
from mnmt_data.fetch.parallel_text import ParallelText, check_folder, publish
from mnmt_data.filters import normalise

SOURCE = "LibreOffice interface"

_CATALOGUE = re.compile(r"/program/resource/(?P<language>[^/]+)/LC_MESSAGES/(?P<file>[^/]+)\.mo$")
_CONTEXT_END = "\x04"
# Chinese, Japanese and Korean labels name their key at the end: 文件(~F)
_NAMED_KEY = re.compile(r"\s*\([~_]\w\)")
_TIPS = frozenset({"extended_tip", "tooltip_text"})
_TILDE = re.compile(r"~(?=\w)")


def fetch_libreoffice_interface(request: FetchConfig, folder: Path, *, report: Callable[[str], None]) -> None:
    """Write the strings of LibreOffice's interface into the corpus folder `folder`.

    Strings align by catalogue, context and English text.

    Args:
        request: Languages and pairs.
        folder: Corpus folder to write.
        report: Called with a line at each stage.

    Raises:
        DataError: If a language has no such package, or it cannot be fetched.
    """
    check_folder(folder)
    packages = LanguagePackages("libreoffice-l10n-", folder.parent / ".downloads", report=report)
    selection = request.select([ENGLISH, *packages.languages], corpus=SOURCE)
    files = packages.download([name for code, name in selection.names.items() if code != ENGLISH])
    strings = dict(read_languages(files, selection, read_interface, report=report))
    text = ParallelText(english_strings(strings.values()))
    for code, units in strings.items():
        report(f"{code}: {text.add(code, units):,} strings translated")
    versions = {file.name.partition("_")[0]: package_version(file) for file in files.values()}
    provenance = {"source": SOURCE, "packages": versions, "licence": LICENCE}
    publish(folder, text, request, selection.only(text.codes), provenance=provenance, report=report)


def english_strings(languages: Iterable[TextUnits]) -> TextUnits:
    """The English of every string that is in one of the languages: it is what catalogues look up."""
    keys = dict.fromkeys(key for units in languages for key in units)
    return {key: text for key in keys if (text := plain_text(key[2], context=key[1]))}


def read_interface(package: Path) -> TextUnits:
    """The strings of a package by (catalogue, context, English).

    Raises:
        DataError: If the package or a catalogue in it is broken.
    """
    try:
        return read_units(package, _CATALOGUE, catalogue_strings)
    except (OSError, UnicodeError, ValueError) as error:
        raise DataError(f"{package}: has a broken catalogue ({error}); delete it and fetch again.") from None


def catalogue_strings(name: str, content: bytes) -> Iterator[tuple[tuple[str, ...], str]]:
    """`((catalogue, context, English), text)` of the strings of a gettext .mo file that have a translation.

    Of a string with plurals it is the singular, in the form that the language has for the number one; it is
    not always the first: in Arabic that is the form for zero.
    """
    catalogue = gettext.GNUTranslations(io.BytesIO(content))
    singular = catalogue.plural(1)  # type: ignore[attr-defined]
    entries: dict[str | tuple[str, int], str] = catalogue._catalog  # type: ignore[attr-defined]
    for entry, translation in entries.items():
        string, form = entry if isinstance(entry, tuple) else (entry, singular)
        context, _, english = string.rpartition(_CONTEXT_END)
        text = plain_text(translation, context=context)
        if english and text and form == singular:
            yield (name, context, english), text


def plain_text(text: str, *, context: str) -> str:
    """A string without the marks of its keyboard accelerator, `~` or `_`, as it is seen on the screen.

    `_` is such a mark in the labels of dialogues, whose contexts are `DIALOGUE|WIDGET` and `stock`; elsewhere
    it belongs to the text, as in `%FILE_NAME`. Tips have no accelerators.
    """
    place = context.split("|")
    if not _TIPS.isdisjoint(place):
        return normalise(text)
    text = _TILDE.sub("", _NAMED_KEY.sub("", text))
    return normalise(text.replace("_", "") if len(place) > 1 or context == "stock" else text)
