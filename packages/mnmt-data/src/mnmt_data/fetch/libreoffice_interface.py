"""LibreOffice's interface: labels, menus, messages and tips from its gettext catalogues."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from mnmt_data.errors import DataError
from mnmt_data.fetch.apt import Progress, Report, package_version
from mnmt_data.fetch.config import FetchConfig
from mnmt_data.fetch.languages import ENGLISH
from mnmt_data.fetch.libreoffice import LICENCE, LanguagePackages, TextUnits, read_languages, read_units
from mnmt_data.fetch.parallel_text import ParallelText, check_folder, publish
from mnmt_data.filters import normalise
from mnmt_data.readers.catalogue import mo_strings

SOURCE = "LibreOffice interface"

_CATALOGUE = re.compile(r"/program/resource/(?P<language>[^/]+)/LC_MESSAGES/(?P<file>[^/]+)\.mo$")
# Chinese, Japanese and Korean labels name their key at the end: 文件(~F)
_NAMED_KEY = re.compile(r"\s*\([~_]\w\)")
_TIPS = frozenset({"extended_tip", "tooltip_text"})
_TILDE = re.compile(r"~(?=\w)")


def fetch_libreoffice_interface(
    config: FetchConfig, folder: Path, *, report: Report, progress: Progress = lambda stage, files: None
) -> None:
    """Write the strings of LibreOffice's interface into the corpus folder `folder`.

    Strings align by catalogue, context and English text.

    Args:
        config: Languages and pairs.
        folder: Corpus folder to write.
        report: Called with a line at each stage.
        progress: Called with the name of a stage and the number of files that it has just done.

    Raises:
        DataError: If a language has no such package, or it cannot be fetched.
    """
    check_folder(folder)
    packages = LanguagePackages(
        "libreoffice-l10n-", folder.parent / ".downloads", report=report, progress=progress
    )
    selection = config.select([ENGLISH, *packages.languages], corpus=SOURCE)
    files = packages.download([name for code, name in selection.names.items() if code != ENGLISH])
    strings = dict(
        read_languages(files, selection, partial(read_interface, progress=progress), report=report)
    )
    text = ParallelText(english_strings(strings.values()))
    for code, units in strings.items():
        report(f"{code}: {text.add(code, units):,} strings translated")
    versions = {file.name.partition("_")[0]: package_version(file) for file in files.values()}
    provenance = {"source": SOURCE, "packages": versions, "licence": LICENCE}
    publish(folder, text, config, selection.only(text.codes), provenance=provenance, report=report)


def english_strings(languages: Iterable[TextUnits]) -> TextUnits:
    """Return the English of every string of any language; catalogues have it as key."""
    keys = dict.fromkeys(key for units in languages for key in units)
    return {key: text for key in keys if (text := plain_text(key[2], context=key[1]))}


def read_interface(package: Path, *, progress: Progress = lambda stage, files: None) -> TextUnits:
    """Read the strings of a package: {(catalogue, context, English): text}.

    Raises:
        DataError: If the package or a catalogue in it is broken.
    """

    def strings(name: str, content: bytes) -> Iterator[tuple[tuple[str, ...], str]]:
        try:
            yield from catalogue_strings(name, content)
        except DataError as error:
            what = f"has a broken catalogue ({str(error).rstrip('.')})"
            raise DataError(f"{package}: {what}; delete it and fetch again.") from None

    return read_units(package, _CATALOGUE, strings, progress=progress)


def catalogue_strings(name: str, content: bytes) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield `((catalogue, context, English), text)` of the translated strings of a gettext .mo file.

    Of a string with plurals only the singular is read, in the form for the number one.

    Raises:
        DataError: If the catalogue is broken.
    """
    for context, english, translation in mo_strings(content, name, plurals=False):
        if english and (text := plain_text(translation, context=context)):
            yield (name, context, english), text


def plain_text(text: str, *, context: str) -> str:
    """Return a string without the mark of its keyboard accelerator, `~` or `_`.

    `_` is such a mark in the labels of dialogues, whose contexts are `DIALOGUE|WIDGET` and `stock`; elsewhere
    it belongs to the text, as in `%FILE_NAME`. Tips have no accelerators.
    """
    place = context.split("|")
    if not _TIPS.isdisjoint(place):
        return normalise(text)
    text = _TILDE.sub("", _NAMED_KEY.sub("", text))
    return normalise(text.replace("_", "") if len(place) > 1 or context == "stock" else text)
