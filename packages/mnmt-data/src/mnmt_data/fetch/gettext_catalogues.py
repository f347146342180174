"""Gettext catalogues of Debian packages or any folder as n-way text, aligned by the English string."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mnmt_data.errors import DataError
from mnmt_data.fetch.apt import Apt, Progress, Report
from mnmt_data.fetch.catalogue_packages import CataloguePackage, choose_packages, fetch_packages
from mnmt_data.fetch.catalogues import CatalogueFile, find_catalogues
from mnmt_data.fetch.config import CataloguesConfig
from mnmt_data.fetch.interface_text import accelerator_mark, plain_text
from mnmt_data.fetch.languages import ENGLISH
from mnmt_data.fetch.parallel_text import ParallelText, check_folder, publish
from mnmt_data.filters import normalise
from mnmt_data.readers.catalogue import String

SOURCE = "gettext catalogues"
LICENCES = "licences.tsv"
"""Table of the packages' licences in the corpus folder; the copyright files themselves are beside it."""

Key = tuple[str, str, str]
"""Domain, context and English string, which identify a string in all languages."""


@dataclass(frozen=True, kw_only=True)
class Strings:
    """The strings of all catalogues; each English string has a number, which identifies its translations."""

    numbers: dict[Key, int] = field(default_factory=dict)
    languages: dict[str, dict[int, str]] = field(default_factory=dict)
    """{code: {number: translation}}."""

    def add(self, code: str, domain: str, strings: Iterable[String]) -> None:
        """Add `(context, English, translation)` of a domain; the first translation of a key wins."""
        translations = self.languages.setdefault(code, {})
        for context, english, translation in strings:
            number = self.numbers.setdefault((domain, context, english), len(self.numbers))
            translations.setdefault(number, translation)


def fetch_gettext(
    config: CataloguesConfig,
    folder: Path,
    *,
    report: Report,
    progress: Progress = lambda stage, files: None,
) -> None:
    """Write the strings of gettext catalogues into the corpus folder `folder`.

    The catalogues are those of Debian packages, or of any folder with .po or .mo files. Strings align by
    catalogue, context and English; the plural of a message is a separate string. A broken catalogue is
    reported and left out.

    Args:
        config: Languages and pairs, the source of the catalogues, and how their strings become text.
        folder: Corpus folder to write.
        report: Called with a line at each stage.
        progress: Called with the name of a stage and the number of files that it has just done.

    Raises:
        DataError: If a package or folder is missing, or no catalogue in it has a requested language.
    """
    check_folder(folder)
    packages = [] if config.catalogues else _packages(config, folder, report=report, progress=progress)
    files = _files(config, packages, report=report)
    selection = config.select([ENGLISH, *_languages(files)], corpus=SOURCE)
    strings = Strings()
    names = {name: code for code, name in selection.names.items() if code != ENGLISH}
    for file in files:
        if file.language in names:
            progress("read", 1)
            strings.add(names[file.language], file.domain, _read(file, report=report))
    text = parallel_text(strings, config, report=report)
    publish(
        folder,
        text,
        config,
        selection.only(text.codes),
        provenance=_provenance(config, packages),
        files=_licence_files(packages, strings),
        report=report,
    )


def _packages(
    config: CataloguesConfig, folder: Path, *, report: Report, progress: Progress
) -> list[CataloguePackage]:
    config.check_languages()
    downloads = folder.parent / ".downloads"
    apt = Apt(downloads, report=report, progress=progress)
    report("looking for packages in apt's lists")
    apt.update()
    names = choose_packages(config.packages, apt, report=report)
    return fetch_packages(apt, names, downloads / "catalogues", report=report)


def _files(
    config: CataloguesConfig, packages: Sequence[CataloguePackage], *, report: Report
) -> list[CatalogueFile]:
    """Find all catalogues; prefix the domains of a package with its name and a colon."""
    if config.catalogues:
        return find_catalogues(config.catalogues, report=report)
    return [
        replace(file, domain=f"{package.name}:{file.domain}")
        for package in packages
        for file in find_catalogues(package.folder, report=report)
    ]


def _languages(files: Sequence[CatalogueFile]) -> list[str]:
    return sorted({file.language for file in files})


def _read(file: CatalogueFile, *, report: Report) -> list[String]:
    try:
        return file.strings()
    except DataError as error:
        report(f"left out: {error}")
        return []


def parallel_text(strings: Strings, config: CataloguesConfig, *, report: Report) -> ParallelText:
    """Return the text of all strings whose English has at least `min_words` words, by number."""
    marks = dict(zip(strings.numbers.values(), _marks(strings), strict=True))

    def text_of(number: int, string: str) -> str:
        return normalise(plain_text(string, marks[number]))

    english = {number: text_of(number, key[2]) for key, number in strings.numbers.items()}
    english = {number: text for number, text in english.items() if len(text.split()) >= config.min_words}
    text = ParallelText(english)
    for code, translations in strings.languages.items():
        units = {number: text_of(number, string) for number, string in translations.items()}
        report(f"{code}: {text.add(code, units):,} strings translated")
    return text


def _marks(strings: Strings) -> Iterator[str]:
    """Yield the accelerator mark of each string's catalogue."""
    domains: defaultdict[str, list[str]] = defaultdict(list)
    for domain, _, english in strings.numbers:
        domains[domain].append(english)
    marks = {domain: accelerator_mark(english) for domain, english in domains.items()}
    return (marks[domain] for domain, _, _ in strings.numbers)


def _provenance(config: CataloguesConfig, packages: Sequence[CataloguePackage]) -> Mapping[str, Any]:
    if config.catalogues:
        return {"source": SOURCE, "folder": config.catalogues, "min_words": config.min_words}
    return {
        "source": SOURCE,
        "packages": {package.name: package.version for package in packages},
        "min_words": config.min_words,
        "licence": f"each package's, in {LICENCES}",
    }


def _licence_files(packages: Sequence[CataloguePackage], strings: Strings) -> dict[str, bytes]:
    """Return {name in the corpus folder: content} of the packages' copyright files and a table of them."""
    if not packages:
        return {}
    counts = Counter(domain.partition(":")[0] for domain, _, _ in strings.numbers)
    rows = [("package", "version", "strings", "licences")]
    for package in packages:
        licences = "; ".join(package.licences) or "read its copyright file"
        rows.append((package.name, package.version, str(counts[package.name]), licences))
    table = "".join("\t".join(row) + "\n" for row in rows)
    texts = {f"copyright.{package.name}.txt": package.copyright.encode() for package in packages}
    return {LICENCES: table.encode(), **texts}
